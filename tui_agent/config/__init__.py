"""Settings: where they come from, what they may be, and what is said when they are wrong."""
