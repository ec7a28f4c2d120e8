"""The one error of the command line, apart from the parser: a start without arguments needs no parser."""

from __future__ import annotations


class UsageError(Exception):
    """The command line cannot be understood. Exit code 2."""
