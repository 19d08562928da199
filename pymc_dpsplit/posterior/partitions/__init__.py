"""Summaries of posterior partitions: similarity, point estimate, credible ball, uncertainty."""
