"""Access to a trace: its mixtures, their draws, and labels of the observations."""
