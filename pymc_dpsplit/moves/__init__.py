"""Moves of the partition, and draws of the random measure given it: every kernel of the chain.

Arguments have the same names and order throughout, ``move(target, labels, stats, rng, ...)``:

target : Target
    Prior, observations and law of the partition, `moves.target`.
labels : ndarray of int32, shape (N,)
    Cluster 0 .. K - 1 of each observation.  Changed in place.
stats : ndarray of float64, shape (K, S)
    Sufficient statistics of the clusters; element 0 is the size.  A move returns a new array.
rng, stream or key
    Source of random numbers: the `numpy.random.Generator` of the chain; a stream of numbers
    from a key, `kernels.streams`; or such a key, a uint64.
acceptance_counts : ndarray of int64, shape (4,)
    Numbers of proposals and acceptances, `moves.acceptance_counts`.  Added to.

Further arguments belong to single moves.  A kernel in an inner loop takes the fields of the target
that it reads, `prior`, `data` or `law`, in this order, as taking a record apart there costs time.
"""
