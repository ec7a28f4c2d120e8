"""agent-tui: a console for AI agents that recover from their own errors."""

__version__ = "0.1.0"
