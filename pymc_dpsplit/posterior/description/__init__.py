"""Descriptions of the clusters of a reference partition, averaged over the draws of a trace."""
