"""Settings: their sources, their values, and the messages about wrong ones."""
