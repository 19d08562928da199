"""Reading the posterior: labels, co-clustering, diagnosis and figures, from a trace."""
