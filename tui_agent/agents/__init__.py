"""Other agents, a file each: their hook events, fields, failures, answers and settings."""
