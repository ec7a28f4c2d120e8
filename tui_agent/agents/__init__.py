"""What is known of other agents, a file each: their hook events, fields, failures, answers and settings."""
