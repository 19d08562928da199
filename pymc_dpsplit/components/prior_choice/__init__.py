"""Choice of the prior of a cluster's variances from the data, by the density of partitions."""
