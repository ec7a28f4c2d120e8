"""Another agent as the one that takes the steps of a session, over the Agent Client Protocol."""
