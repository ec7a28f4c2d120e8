"""Behaviours of servers as data: what one sends and refuses, and what a run against it must come to (README.md)."""
