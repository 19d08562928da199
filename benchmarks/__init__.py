"""Benchmarks: a module with a `run` measures one subject; `run.py` runs all and writes the page.

What a subject is called and how it is introduced on the page is in `catalogue`, what its rows
are in `row`; `subject` holds all uses of the package's internals.
"""
