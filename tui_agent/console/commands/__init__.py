"""Screens and questions of the commands of each screen; their effects are in `frontend.commands`."""
