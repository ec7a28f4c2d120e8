"""Warnings on standard error, for commands whose standard output is a program's."""

from __future__ import annotations

import logging
import sys

from tui_agent.terminal_text import one_line


class _OneLine(logging.Formatter):
    """A line for each record, without tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        return f"agent-tui: {one_line(record.getMessage(), 1_000)}"


def log_to_stderr(*names: str) -> None:
    """Write the warnings of these loggers and those below them, and of no others, a line each; without names, all."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine())
    for name in names or ("",):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False
