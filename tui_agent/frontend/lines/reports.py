"""Reports of a session as lines: how it stands, what it cost, what it changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tui_agent.core.projections.tally import tally
from tui_agent.frontend.lines.diff import FileDiff, file_diff
from tui_agent.frontend.lines.mode import mode_of
from tui_agent.frontend.lines.outlook import figure
from tui_agent.frontend.lines.styled import Line, Span, pad, wrap
from tui_agent.quantities import counted, dollars, seconds
from tui_agent.terminal_text import escaped_line, one_line

if TYPE_CHECKING:
    from tui_agent.core.projections.metrics import Usage
    from tui_agent.core.state import RunState

_LABEL = 14


def status_lines(state: RunState, width: int, next_model: str = "", next_policy: str = "") -> list[Line]:
    """The session and its newest run; the model and policy of the next one if there is none yet."""
    run, session = state.run, state.session
    metrics = state.metrics
    rows = [
        ("session", f"{session.id}  {one_line(session.title, 80)}".strip()),
        ("workspace", session.workspace),
        ("model", state.model or next_model or "none chosen"),
        ("policy", run.policy or session.policy or next_policy or "–"),
        ("approvals", str(session.approve or "ask")),
        *(("check", session.check) for _ in range(bool(session.check))),
        *(("goal", session.goal) for _ in range(bool(session.goal))),
        ("mode", mode_of(state)),
        (
            "step",
            f"{run.iteration}{f' of {run.last_step}' if run.last_step else ''}"
            if run.number
            else "no run yet",
        ),
        ("failures", tally(state).in_words(ended=run.outcome is not None)),
        *(("confidence", figure(state.recovery).span.text) for _ in range(min(1, run.number))),
        ("files changed", ", ".join(map(escaped_line, metrics.files_changed)) or "none"),
        ("checkpoints", str(len(state.checkpoints))),
    ]
    return _rows(rows, width)


def cost_lines(state: RunState, now: float, width: int) -> list[Line]:
    """Tokens and cost of the newest run and of the whole session."""
    metrics = state.metrics
    end = metrics.ended_at or now
    time = seconds(max(0.0, end - metrics.started_at)) if metrics.started_at else "–"
    rows = [
        ("this run", _used(metrics.usage)),
        (
            "",
            f"{counted(metrics.model_calls, 'model call')}, {counted(metrics.tool_calls, 'tool call')}, {time}",
        ),
        ("session", _used(metrics.session_usage)),
    ]
    if metrics.usage.unpriced:
        calls = counted(metrics.usage.unpriced, "call")
        known = "" if metrics.usage.cost is None else ": the sum is at least this"
        rows.append(("", f"{calls} of this run without a known price{known}."))
    return _rows(rows, width)


def _used(usage: Usage) -> str:
    cost = "cost unknown" if usage.cost is None else dollars(usage.cost)
    cached = f" ({usage.cached_tokens:,} from the cache)" if usage.cached_tokens else ""
    return f"{usage.prompt_tokens:,} tokens in{cached}, {usage.completion_tokens:,} out, {cost}"


def _rows(rows: Iterable[tuple[str, str]], width: int) -> list[Line]:
    lines: list[Line] = []
    for label, text in rows:
        for place, piece in enumerate(wrap(one_line(text, 2_000), max(8, width - _LABEL))):
            lines.append((Span(pad("" if place else label, _LABEL), "muted"), Span(piece)))
    return lines


BY_TOOLS = "Changes by the file tools (not by commands)"
"""Title above the lines of `changed_files`, if no checkpoint tells the rest."""


def changed_files(state: RunState) -> list[FileDiff]:
    """Changes that the tools of the newest run report, by the files' names, in the order of the changes."""
    from tui_agent.core.projections.entries import OperatorEntry

    files: dict[str, list[str]] = {}
    entries = state.conversation.entries
    for place in range(len(entries) - 1, -1, -1):
        entry = entries[place]
        if isinstance(entry, OperatorEntry) and not entry.iteration:
            break
        diff = getattr(entry, "diff", "")
        if diff:
            name = ", ".join(map(escaped_line, getattr(entry, "changed", ()))) or "?"
            files.setdefault(name, []).insert(0, diff)
    for call in state.conversation.calls:
        if call.diff:
            files.setdefault(", ".join(map(escaped_line, call.changed)) or "?", []).append(call.diff)
    joined = {name: "\n".join(files[name]) for name in sorted(files)}
    return [file_diff(name, diff) for name, diff in joined.items()]
