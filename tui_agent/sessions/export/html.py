"""A session as one HTML page that needs nothing else: no script, no network, light or dark by the reader's
choice.

A strict content security policy stands in the page, the style is allowed by its digest alone, and every
foreign text passes `text`. What the page looks like is `html_style`'s; the curve is `html_curve`'s.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import time
from typing import TYPE_CHECKING

from tui_agent import events as e
from tui_agent.folds.conversation import (
    CallEntry,
    CallState,
    EscalationEntry,
    FaultEntry,
    NoticeEntry,
    OperatorEntry,
    ReplyEntry,
)
from tui_agent.sessions.export.html_curve import curve
from tui_agent.sessions.export.html_style import STYLE
from tui_agent.sessions.export.plain import clock
from tui_agent.sessions.export.story import (
    IterationItem,
    NoteItem,
    RunStory,
    Story,
    VerdictItem,
    call_state,
    subject,
    tell,
)
from tui_agent.sessions.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SUMMARY_LENGTH = 140
"""Characters of a call's arguments or error that its closed block shows."""

_POLICY = "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def text(value: str) -> str:
    """Foreign text as HTML text or as a quoted attribute's value."""
    return html.escape(visible(value), quote=True)


def to_html(events: Sequence[e.Event]) -> str:
    """The page. The same events give the same page."""
    story = tell(events)
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    title = text(story.title)
    return "".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY.format(digest=digest)}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="referrer" content="no-referrer">\n',
            '<meta name="color-scheme" content="light dark">\n',
            f"<title>{title} · agent-tui</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
            *_head(story, title),
            '<main class="columns">\n<div class="talk">\n',
            *(part for item in story.before for part in _item(item)),
            *(part for run in story.runs for part in _run(run)),
            "</div>\n",
            *_timeline(story),
            "</main>\n<footer>Exported by agent-tui. This page loads nothing and runs nothing.</footer>\n",
            "</body>\n</html>\n",
        ]
    )


# --- the head ---------------------------------------------------------------------------------------------


def _head(story: Story, title: str) -> Iterator[str]:
    session, run = story.state.session, story.state.run
    chips = [
        ("model", run.model),
        ("policy", run.policy),
        ("from", session.source),
        ("in", session.workspace),
    ]
    yield f'<header>\n<p class="kicker">agent-tui session <code>{text(session.id)}</code></p>\n<h1>{title}</h1>\n'
    yield '<p class="chips">'
    if session.started_at > 0:
        began = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(session.started_at))
        yield f'<span class="chip">{began}</span>'
    for name, value in chips:
        if value:
            yield f'<span class="chip"><i>{name}</i> {text(value)}</span>'
    if session.parent is not None:
        parent = session.parent
        yield f'<span class="chip"><i>forked from</i> {text(parent.session_id)} at event {parent.seq}</span>'
    yield "</p>\n"
    yield from _tiles(story)
    if story.samples:
        yield '<section class="curve" aria-label="Confidence"><h2>Confidence</h2>\n'
        yield curve(story.samples, story.iterations)
        yield "</section>\n"
    yield "</header>\n"


def _tiles(story: Story) -> Iterator[str]:
    usage = story.state.metrics.session_usage
    calls = sum(run.tool_calls for run in story.runs)
    failures = sum(run.failures for run in story.runs)
    recovered = sum(run.recoveries for run in story.runs)
    escalations = sum(run.escalations for run in story.runs)
    tiles = [
        ("", f"{len(story.runs):,}", "run" if len(story.runs) == 1 else "runs"),
        ("", f"{sum(run.iterations for run in story.runs):,}", "iterations"),
        ("", f"{calls:,}", "tool calls"),
        ("error" if failures else "", f"{failures:,}", "failures"),
        ("ok" if recovered else "", f"{recovered:,}", "recovered"),
        ("warn" if escalations else "", f"{escalations:,}", "escalations"),
    ]
    if usage.prompt_tokens or usage.completion_tokens:
        tiles.append(("", _short(usage.prompt_tokens + usage.completion_tokens), "tokens"))
        tiles.append(("", "–", "cost unknown") if usage.cost is None else ("", f"${usage.cost:.2f}", "cost"))
    yield '<dl class="tiles">'
    for role, value, name in tiles:
        yield f'<div class="tile {role}"><dt>{name}</dt><dd>{value}</dd></div>'
    yield "</dl>\n"


def _short(count: int) -> str:
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return str(count)


# --- the conversation -------------------------------------------------------------------------------------


def _run(run: RunStory) -> Iterator[str]:
    outcome = run.outcome
    state = str(outcome.outcome) if outcome else "open"
    yield f'<section class="run" id="run-{run.number}">\n<h2>Run {run.number} '
    yield f'<span class="badge {_role(state)}">{state.replace("_", " ")}</span></h2>\n'
    yield f'<div class="bubble operator"><span class="who">operator</span><p>{text(run.task)}</p></div>\n'
    for item in run.items:
        yield from _item(item)
    if outcome is not None:
        yield f'<div class="outcome {_role(state)}" id="e{outcome.seq}"><b>{state.replace("_", " ")}</b>'
        yield f" <span>{text(outcome.reason)}</span>" if outcome.reason else ""
        yield (
            f"<small>{_count(run.iterations, 'iteration')} · {_count(run.tool_calls, 'call')} · "
            f"{_count(run.failures, 'failure')} · {run.recoveries} recovered · {_seconds(run.duration)}</small>"
        )
        if outcome.answer and outcome.outcome is not e.Outcome.ANSWERED:
            yield f"<p>{text(outcome.answer)}</p>"
        yield "</div>\n"
    yield "</section>\n"


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}{'' if number == 1 else 's'}"


def _role(state: str) -> str:
    if state == "answered":
        return "ok"
    return "warn" if state in {"partial", "interrupted", "escalated", "open"} else "error"


def _item(item: object) -> Iterator[str]:
    match item:
        case IterationItem():
            yield f'<p class="iteration" id="e{item.seq}"><span>iteration {item.number}</span></p>\n'
        case VerdictItem():
            yield from _verdict(item)
        case NoteItem():
            edited = ", edited by the operator" if item.edited else ""
            yield f'<details class="note" id="e{item.seq}"><summary>recovery note{edited}</summary>'
            yield f"<pre>{text(item.text)}</pre></details>\n"
        case OperatorEntry():
            yield f'<div class="bubble operator" id="e{item.seq}"><span class="who">operator</span>'
            yield f"<p>{text(item.text)}</p></div>\n"
        case ReplyEntry():
            yield from _reply(item)
        case CallEntry():
            yield from _call(item)
        case FaultEntry():
            yield f'<div class="fault" id="e{item.seq}"><b>{text(item.fault.kind)}</b> '
            yield f"{text(item.fault.message)}<small>attempt {item.attempt}, then {text(item.action)}</small></div>\n"
        case NoticeEntry():
            yield f'<p class="notice {item.severity}" id="e{item.seq}">{text(item.text)}</p>\n'
        case EscalationEntry():
            yield f'<div class="escalation" id="e{item.seq}"><b>asked by {text(item.source)}</b>'
            yield f"<p>{text(item.question)}</p></div>\n"
            yield f'<div class="bubble operator"><span class="who">operator · {text(item.choice)}</span>'
            yield f"<p>{text(item.answer)}</p></div>\n"


def _verdict(item: VerdictItem) -> Iterator[str]:
    yield f'<div class="verdict {item.level}" id="e{item.seq}"><b>{item.level}</b> '
    yield f"<span>{text(item.reason)}</span><small>{text(item.detector)}</small>"
    for other in item.others:
        yield f"<p>also {other.level} · {text(other.detector)}: {text(other.reason)}</p>"
    yield "</div>\n"


def _reply(reply: ReplyEntry) -> Iterator[str]:
    if reply.reasoning:
        yield '<details class="reasoning"><summary>reasoning</summary>'
        yield f"<p>{text(reply.reasoning.strip())}</p></details>\n"
    if reply.text:
        partial = " · cut short, not kept" if reply.partial else ""
        yield f'<div class="bubble model" id="e{reply.seq}"><span class="who">model{partial}</span>'
        yield f"<p>{text(reply.text.strip())}</p></div>\n"


_MARKS = {
    CallState.SUCCEEDED: ("ok", "✓"),
    CallState.FAILED: ("error", "✗"),
    CallState.DENIED: ("warn", "⊘"),
    CallState.BLOCKED: ("blocked", "⊘"),
    CallState.CANCELLED: ("warn", "–"),
}


def _call(call: CallEntry) -> Iterator[str]:
    role, mark = _MARKS.get(call.state, ("", "…"))
    told = _one_line(subject(call))
    yield f'<details class="call {role}" id="e{call.seq}-{call.index}"><summary><b>{mark}</b> '
    yield f"<code>{text(call.tool)}</code> <span>{text(told)}</span><small>"
    yield f"attempt {call.attempt} · " if call.attempt > 1 else ""
    yield text(call_state(call)) + (f" · {_seconds(call.duration)}" if call.duration else "") + "</small>"
    if call.failure is not None:
        yield f"<em>{text(_one_line(call.failure.message))}</em>"
    yield "</summary>\n"
    if call.input or call.arguments:
        values = json.dumps(call.input, ensure_ascii=False, indent=2) if call.input else call.arguments
        yield f"<pre>{text(values)}</pre>\n"
    if call.diff:
        yield f'<pre class="diff">{_diff(call.diff)}</pre>\n'
    if call.content:
        yield f"<pre>{text(call.content)}</pre>\n"
    if call.reason and call.reason not in call.content:
        yield f"<p>{text(call.reason)}</p>\n"
    yield "</details>\n"


def _diff(diff: str) -> str:
    lines = []
    for line in diff.splitlines():
        if line.startswith("+") and not line.startswith("+++"):
            lines.append(f"<ins>{text(line)}</ins>")
        elif line.startswith("-") and not line.startswith("---"):
            lines.append(f"<del>{text(line)}</del>")
        else:
            lines.append(text(line))
    return "\n".join(lines)


def _one_line(value: str) -> str:
    value = " ".join(value[: _SUMMARY_LENGTH * 4].split())
    return value if len(value) <= _SUMMARY_LENGTH else f"{value[: _SUMMARY_LENGTH - 1]}…"


def _seconds(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {rest} s"


# --- the timeline -----------------------------------------------------------------------------------------


def _timeline(story: Story) -> Iterator[str]:
    anchors = _anchors(story)
    start = story.state.session.started_at
    yield '<aside class="timeline" aria-label="Timeline"><h2>Timeline</h2>\n<ol>\n'
    for line in story.timeline:
        role = str(line.level) if line.level else line.kind
        by = f"<small>{text(line.detector)}</small>" if line.detector else ""
        told = f"<b>{text(role)}</b>{by} {text(_one_line(line.text))}"
        anchor = anchors.get(line.seq)
        told = f'<a href="#{anchor}">{told}</a>' if anchor else told
        place = str(line.iteration) if line.iteration else ""
        yield f'<li class="t-{text(role)}"><time>{clock(line.at - start)}</time><i>{place}</i>{told}</li>\n'
    yield "</ol></aside>\n"


def _anchors(story: Story) -> dict[int, str]:
    """Where the conversation shows what a line of the timeline tells, by event number."""
    anchors: dict[int, str] = {}
    for run in story.runs:
        for item in run.items:
            seq = getattr(item, "seq", 0)
            if not isinstance(item, CallEntry) and seq:
                anchors.setdefault(seq, f"e{seq}")
        if run.outcome is not None:
            anchors[run.outcome.seq] = f"e{run.outcome.seq}"
    return anchors
