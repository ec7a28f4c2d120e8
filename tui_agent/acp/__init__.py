"""The Agent Client Protocol: its messages on a pair of streams, and its words for what this program knows."""
