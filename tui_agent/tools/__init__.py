"""Tools: what the agent can do to the world, inside the workspace."""
