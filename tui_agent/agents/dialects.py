"""The agents whose hooks are understood, by the names that `--agent` takes."""

from __future__ import annotations

from tui_agent.agents import (
    claude_code,
    codex,
    copilot,
    cursor,
    gemini_cli,
    kimi_code,
    mistral_vibe,
    opencode,
    qwen_code,
)
from tui_agent.agents.dialect import Dialect, Record

DIALECTS: dict[str, Dialect] = {
    one.DIALECT.name: one.DIALECT
    for one in (
        *(claude_code, copilot, codex, gemini_cli, cursor, mistral_vibe, opencode, qwen_code, kimi_code),
    )
}


def named(name: str) -> Dialect:
    """Raises `ValueError` for an agent that is not known."""
    if name not in DIALECTS:
        raise ValueError(f"There is no agent {name!r}; there are {', '.join(DIALECTS)}.")
    return DIALECTS[name]


def of(record: Record) -> Dialect:
    """The agent that sends such an event: the first that has one of this name. Raises `ValueError` if none
    has.
    """
    for dialect in DIALECTS.values():
        if record.get(dialect.fields.event) in dialect.events and dialect.sends(record):
            return dialect
    raise ValueError("the event is of no known agent")
