"""Prior distribution of the number of clusters, and priors on alpha."""
