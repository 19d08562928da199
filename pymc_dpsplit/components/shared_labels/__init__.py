"""Rows that share a label: groups of rows, and rows that stand for several, as single items."""
