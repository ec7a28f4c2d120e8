"""Permission rules: what may run unasked, what asks, what never runs, and the reading of commands for that."""
