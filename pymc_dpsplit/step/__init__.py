"""Step method of `pm.sample`: its schedule, the statistics it records, and its compilation."""
