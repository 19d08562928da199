"""Wrappers around functions of PyMC, installed in place of the originals."""
