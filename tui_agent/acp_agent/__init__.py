"""Our engine as an agent of the Agent Client Protocol: sessions that an editor, a harness or a script drives."""
