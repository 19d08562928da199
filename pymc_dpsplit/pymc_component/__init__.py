"""Components with any distribution of PyMC: graphs, compiled functions and their addresses."""
