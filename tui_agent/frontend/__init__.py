"""The floor under both consoles: commands for a session, and its words, without a screen."""
