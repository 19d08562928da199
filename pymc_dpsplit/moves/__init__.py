"""Markov moves on the partition, one per file; each leaves the posterior invariant."""
