"""The whole session as one JSON document: what it is, how it ended, and every event as it was.

`sessions import` restores the session from it exactly (`importers.own` reads it).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tui_agent import __version__
from tui_agent.core.events import SCHEMA_VERSION, Event, SessionStarted
from tui_agent.core.fold import fold
from tui_agent.core.state import RunState
from tui_agent.formats.importers.own import EXPORT_FORMAT
from tui_agent.terminal_text import json_text

_COUNTERS = (
    "model_calls",
    "model_retries",
    "model_faults",
    "tool_calls",
    "tool_errors",
    "failures",
    "recoveries",
    "recovered_same_call",
    "recovered_worked_round",
    "unrecovered",
    "coherence_violations",
    "escalations",
)


def to_json(events: Sequence[Event]) -> str:
    """The document. `events` restores the session; everything beside it is for readers that want no events."""
    state = fold(events)
    started = events[0] if events else None
    document: dict[str, Any] = {
        "format": EXPORT_FORMAT,
        "version": 1,
        "schema_version": SCHEMA_VERSION,
        "app_version": __version__,
        "session": _session(state, started.source if isinstance(started, SessionStarted) else ""),
        "events": [json.loads(event.model_dump_json()) for event in events],
    }
    return written(document)


def written(document: dict[str, Any]) -> str:
    """The document as text: what a terminal acts on stands as an escape, everything else as it is."""
    return json_text(json.dumps(document, ensure_ascii=False, indent=1)) + "\n"


def _session(state: RunState, source: str) -> dict[str, Any]:
    metrics = state.metrics
    return {
        "id": state.session.id,
        "title": state.session.title,
        "workspace": state.session.workspace,
        "source": source,
        "model": state.run.model,
        "policy": state.run.policy,
        "runs": state.run.number,
        "outcome": str(state.run.outcome) if state.run.outcome else None,
        "reason": state.run.reason,
        "rule": state.run.rule or None,
        "answer": state.run.answer,
        "started_at": state.session.started_at,
        "last_run": {
            "iterations": state.run.iteration,
            **{name: getattr(metrics, name) for name in _COUNTERS},
        },
        "usage": {
            "prompt_tokens": metrics.session_usage.prompt_tokens,
            "cached_tokens": metrics.session_usage.cached_tokens,
            "cache_write_tokens": metrics.session_usage.cache_write_tokens,
            "completion_tokens": metrics.session_usage.completion_tokens,
            "cost_usd": metrics.session_usage.cost,
        },
    }
