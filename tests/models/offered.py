"""The tool that requests of these tests offer, and how long a test waits."""

BASH = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "run",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
    },
}
LONGEST = 60.0
"""Seconds; what takes longer hangs."""
