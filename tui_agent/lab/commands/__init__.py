"""The laboratory's commands, a file each, as in `tui_agent.cli`."""
