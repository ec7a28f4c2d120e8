"""A session as one HTML page that needs nothing else: no script, no network, light or dark by the reader's choice.

The templates beside this file draw it. Autoescape is on and `_shown` makes control characters visible in everything
that a template prints, so no template can forget either. A strict content security policy stands in the page and
allows the style by its digest alone.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tui_agent.call_names import subject_of
from tui_agent.core.events import Event
from tui_agent.core.names import CallState
from tui_agent.core.projections.entries import (
    CallEntry,
    EscalationEntry,
    FaultEntry,
    NoticeEntry,
    OperatorEntry,
    OwnCommandEntry,
    ReplyEntry,
    SummaryEntry,
)
from tui_agent.core.receipt_lines import listed
from tui_agent.formats.exporters.curve import curve
from tui_agent.formats.exporters.story import (
    IterationItem,
    NoteItem,
    RunStory,
    Story,
    VerdictItem,
    story_of,
)
from tui_agent.formats.exporters.wording import (
    about_summary,
    asker,
    by_rule,
    call_state,
    clock,
    counts,
    input_text,
    rate,
)
from tui_agent.headline import headline
from tui_agent.quantities import compact, counted, seconds
from tui_agent.terminal_text import clipped, visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


_TEMPLATES = Path(__file__).with_name("templates")
_SUMMARY_LENGTH = 140
"""Characters of a call's arguments or error that its closed block shows."""

_LONGEST_PROSE = 200_000
"""Characters of a reply that is drawn as Markdown; a longer one stands as it is."""

_POLICY = "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

_KINDS = {
    IterationItem: "iteration",
    VerdictItem: "verdict",
    NoteItem: "note",
    OperatorEntry: "operator",
    OwnCommandEntry: "own_command",
    ReplyEntry: "reply",
    CallEntry: "call",
    FaultEntry: "fault",
    NoticeEntry: "notice",
    EscalationEntry: "escalation",
    SummaryEntry: "summary",
}
"""The macro of `entries.html.j2` that draws an item."""

_MARKS = {
    CallState.SUCCEEDED: ("ok", "✓"),
    CallState.FOUND: ("warn", "!"),
    CallState.FAILED: ("error", "✗"),
    CallState.DENIED: ("warn", "⊘"),
    CallState.BLOCKED: ("blocked", "⊘"),
    CallState.CANCELLED: ("warn", "–"),
    CallState.NOT_KNOWN: ("warn", "~"),
}


def to_html(events: Sequence[Event]) -> str:
    """The page. The same events give the same page."""
    story = story_of(events)
    style = (_TEMPLATES / "style.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return (
        _environment()
        .get_template("session.html.j2")
        .render(
            story=story,
            session=story.state.session,
            style=style,
            policy=_POLICY.format(digest=digest),
            chips=list(_chips(story)),
            tiles=list(_tiles(story)),
            curve=curve(story),
            anchors=_anchors(story),
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "receipts": listed,
        "about_summary": about_summary,
        "asker": asker,
        "by_rule": by_rule,
        "call_state": call_state,
        "clock": clock,
        "date": lambda at: time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at)),
        "diff_lines": _diff_lines,
        "cause": lambda failure: headline(failure.message, _SUMMARY_LENGTH),
        "input_text": input_text,
        "kind": lambda item: _KINDS[type(item)],
        "mark": lambda call: _MARKS.get(call.state, ("", "…")),
        "prose": _prose,
        "role": _role,
        "seconds": seconds,
        "short": _short,
        "subject": lambda call: subject_of(call, getattr(call, "arguments", "")),
        "sums": _sums,
        "words": lambda name: name.replace("_", " "),
    }
    return environment


def _shown(value: Any) -> Any:
    """Whatever a template prints, with control characters made visible; escaping follows."""
    return visible(str(value)) if isinstance(value, str) and not isinstance(value, Markup) else value


def _chips(story: Story) -> Iterator[tuple[str, str]]:
    session, run = story.state.session, story.state.run
    yield "model", run.model
    yield "policy", run.policy
    yield "from", session.source
    yield "in", session.workspace
    if session.parent is not None:
        yield "forked from", f"{session.parent.session_id} at event {session.parent.seq}"


def _tiles(story: Story) -> Iterator[tuple[str, str, str]]:
    """Role, value and name of each number at the head of the page."""
    usage = story.state.metrics.session_usage
    runs, failures = len(story.runs), story.total("failures")
    recovered, escalations = story.total("recoveries"), story.total("escalations")
    yield "", f"{runs:,}", "run" if runs == 1 else "runs"
    yield "", f"{sum(run.iterations for run in story.runs):,}", "steps"
    yield "", f"{story.total('tool_calls'):,}", "tool calls"
    yield "error" if failures else "", f"{failures:,}", "failures"
    yield "ok" if recovered else "", f"{recovered:,}", "recovered"
    yield "", rate(recovered, failures) or "–", "recovery rate"
    yield "", rate(story.total("tool_errors"), story.total("tool_calls")) or "–", "error rate"
    yield "warn" if escalations else "", f"{escalations:,}", "escalations"
    if usage.prompt_tokens or usage.completion_tokens:
        yield "", compact(usage.prompt_tokens + usage.completion_tokens), "tokens"
        yield ("", "–", "cost unknown") if usage.cost is None else ("", f"${usage.cost:.2f}", "cost")


def _anchors(story: Story) -> set[int]:
    """Numbers of the events that the conversation shows under an anchor of their own."""
    items = (item.seq for run in story.runs for item in run.items if not isinstance(item, CallEntry))
    return {*items, *(run.outcome.seq for run in story.runs if run.outcome is not None)}


# --- words and numbers --------------------------------------------------------------------------------------


def _prose(text: str) -> str:
    """Markdown of the model as elements, safe as they are: nothing in it becomes a tag, a link or a picture."""
    text = visible(text.strip())
    if len(text) > _LONGEST_PROSE:
        return Markup("<p class='plain'>{}</p>").format(text)
    rendered: str = _markdown().render(text)
    return rendered


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    plain = ["link", "image", "autolink", "reference", "html_block", "html_inline"]
    return MarkdownIt("js-default", {"html": False, "linkify": False}).disable(plain)


def _role(state: str) -> str:
    if state == "answered":
        return "ok"
    return "warn" if state in {"partial", "interrupted", "escalated", "open"} else "error"


def _sums(run: RunStory) -> str:
    return f"{counted(run.iterations, 'step')} · {counts(run.metrics)} · {seconds(run.duration)}"


def _diff_lines(diff: str) -> Iterator[tuple[str, str]]:
    """Each line with the element that marks it; "" for context and file names."""
    for line in diff.splitlines():
        tag = {"+": "ins", "-": "del"}.get(line[:1], "")
        yield "" if line.startswith(("+++", "---")) else tag, line


def _short(value: str) -> str:
    return clipped(" ".join(value[: _SUMMARY_LENGTH * 4].split()), _SUMMARY_LENGTH)
