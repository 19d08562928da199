"""Normal clusters with a full covariance: family, predictive density and bounds for pruning."""
