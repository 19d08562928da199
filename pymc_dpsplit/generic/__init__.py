"""Any distribution of PyMC as a component: its graphs, compiled once, known by address."""
