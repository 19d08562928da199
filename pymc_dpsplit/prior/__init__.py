"""What a prior on alpha says of the number of clusters, before any data."""
