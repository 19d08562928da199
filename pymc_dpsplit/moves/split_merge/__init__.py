"""Split/merge moves for conjugate families, cluster parameters integrated out."""
