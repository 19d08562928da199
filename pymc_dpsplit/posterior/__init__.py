"""Functions that read a trace: labels, partitions, prediction, diagnostics and figures."""
