"""The density of a mixture and of its margins, in the draws of a trace."""
