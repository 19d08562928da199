"""Non-conjugate families: interface and kernel operations."""
