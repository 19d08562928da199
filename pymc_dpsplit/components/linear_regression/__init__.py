"""Linear regressions with a normal-inverse-gamma prior: family, posterior, predictive, defaults."""
