"""More draws of the chains of a trace."""
