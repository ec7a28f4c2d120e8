"""The agent: one iteration after another, from messages to a verdict."""
