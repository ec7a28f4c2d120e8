"""The prompt and its fields: editing, completion, what waits behind it."""
