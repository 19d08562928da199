"""Prediction of new rows from the draws of a trace."""
