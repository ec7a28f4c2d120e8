"""Open sessions, each in a tab."""
