"""Floored-slice sweep over all labels, and mixture densities under a draw of the measure."""
