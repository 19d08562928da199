"""Topic models in PyMC: declaration, random variables, and the step."""
