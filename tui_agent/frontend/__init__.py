"""What both consoles stand on: what can be asked of a session and what is said, without a screen."""
