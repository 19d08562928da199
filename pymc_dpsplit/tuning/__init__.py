"""What tuning chooses from the draws of a chain: the iterations of a draw."""
