"""Tools, resources and prompts of MCP servers: started as child processes or reached over HTTP."""
