"""A tool call as a block: a headline with state, tool, input, attempt and time; below it what came of it.

A call that succeeded is its headline alone, with the last line that it wrote; under the full density its output is
folded to a few lines, the end of it for commands and the beginning for the rest. A failure is open: quiet while it may
still be recovered, and loud once it stands.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from tui_agent.call_names import main_argument, shortened, subject_of
from tui_agent.console.panes.density import Density, looks_by
from tui_agent.console.panes.lane_block import draw_lane
from tui_agent.console.panes.wrappings import unwrapped
from tui_agent.core.names import RAN_UNASKED, READS_ONLY, CallState, FailureKind
from tui_agent.core.tool_facts import facts_of
from tui_agent.frontend.lines.diff import diff_counts, draw_diff
from tui_agent.frontend.lines.glyphs import CALL_STATES
from tui_agent.frontend.lines.styled import (
    Line,
    Span,
    clip,
    fit,
    fit_middle,
    justified,
    squeezed,
    text_of,
    width_of,
    wrap,
)
from tui_agent.headline import headline, last_line
from tui_agent.quantities import counted, ordinal, seconds
from tui_agent.terminal_text import one_line, reveal, sanitize

if TYPE_CHECKING:
    from tui_agent.console.panes.block_context import BlockContext
    from tui_agent.core.projections.entries import CallEntry
    from tui_agent.core.projections.incidents import Incident

_REMARKS = 4
_ROOMY = 100
"""Columns from which a headline says everything in words."""
_READABLE = 24
"""Cells of a call that come before the details of its recovery."""
_ARROW = "  → "
_LEAST = 8
"""Cells below which nothing is said of what came of a call."""
_FOLDED_FAILURE = 6
_FOLDED_PROGRESS = 5
OPENED = 2_000
"""Lines of an opened block."""
FOLD = "(Enter or click)"
BEYOND = "(c copies all of it)"
IN_FILE = "(all of it is in the file above)"
"""How the lines that are not shown are reached: of a folded block, of an opened one, of a result that was cut."""


def shown_state(entry: CallEntry) -> CallState:
    """The call's state; a question to the operator waits while it runs."""
    asks = facts_of(entry).waits and entry.state is CallState.RUNNING
    return CallState.WAITING if asks else entry.state


def draw_call(entry: CallEntry, width: int, context: BlockContext) -> list[Line]:
    """The block's lines."""
    state = shown_state(entry)
    if not context.expanded and in_a_line(entry, context.density):
        return [_headline(entry, width, context, state, _outcome(entry, state))]
    lines = [_headline(entry, width, context, state)]
    if context.expanded:
        lines.extend(_input(entry, width))
    body_width = max(4, width - 4)
    body = [] if entry.lane is None else draw_lane(entry.lane, body_width, context)
    body += _body(entry, body_width, context, state)
    bar = Span("  │ ", "error" if state is CallState.FAILED and _loud(entry, context) else "faint")
    lines.extend((bar, *line) for line in body)
    return lines


def in_a_line(entry: CallEntry, density: Density) -> bool:
    """True if a call that nobody opened is its headline alone."""
    match shown_state(entry):
        case CallState.SUCCEEDED:
            return density is Density.COMPACT or (
                density is Density.NORMAL and not entry.diff and entry.lane is None
            )
        case CallState.RUNNING:
            return density is Density.COMPACT and entry.lane is None
        case _:
            return False


def _outcome(entry: CallEntry, state: CallState) -> str:
    """The result of a call, in a few words: the last line that a command wrote, or the size of its output."""
    if entry.diff or facts_of(entry).aside:
        return ""
    text = unwrapped(entry.progress if state is CallState.RUNNING else entry.content).strip("\n")
    if looks_by(entry) and "\n" in text:
        return counted(text.count("\n") + 1, "line")
    return last_line(text)


def _loud(entry: CallEntry, context: BlockContext) -> bool:
    if context.recovered:
        return False
    counted = context.limit and not _wrong_call(entry)
    return context.final or bool(counted and entry.attempt >= context.limit)


def _headline(
    entry: CallEntry, width: int, context: BlockContext, state: CallState, outcome: str = ""
) -> Line:
    """State, tool, what it is about, what came of it (`outcome`), and its end: attempt, recovery and time."""
    sign = CALL_STATES[state]
    glyph = context.frame if state is CallState.RUNNING else sign.glyph
    role = sign.role
    back = ""
    if state is CallState.FAILED:
        loud = _loud(entry, context)
        role = "error" if loud else "warn"
        back = " on:error-background" if loud else ""
    call, name = _named(entry), one_line(facts_of(entry).label or entry.tool)
    meta: tuple[Span, ...] = ()
    room = 0
    for details, timed in ((3, True), (3, False), (2, True), (1, True)) if entry.recovered else ((3, True),):
        brief = width < _ROOMY
        meta = _meta(entry, context, state, role, back, brief=brief, details=details, timed=timed)
        room = width - 2 - len(name) - 2 - (width_of(meta) + 2 if meta else 0)
        if room >= min(len(call), _READABLE):
            break
    if room < 8:
        meta = meta[:1]
        room = width - 4 - len(name) - (width_of(meta) + 2 if meta else 0)
    said = _beside(call, outcome, room)
    left = (
        Span(f"{glyph} ", f"{role} bold{back}"),
        Span(f"{name}  ", f"bold{back}"),
        Span(
            fit_middle(call, max(4, room - width_of((said,)))),
            f"{'' if state != 'requested' else 'muted'}{back}".strip(),
        ),
        *((said,) if said.text else ()),
    )
    line = justified(left, meta, width, 2)
    return tuple(Span(span.text, span.style or back.strip()) for span in line) + (
        (Span("", back.strip()),) if back else ()
    )


def _beside(call: str, outcome: str, room: int) -> Span:
    """The result of a call, behind it in the same line: the call has two thirds of the room if it needs them."""
    left = room - min(cell_len(call), 2 * room // 3) - len(_ARROW)
    return Span(
        f"{_ARROW}{fit(outcome, left)}" if outcome and left >= min(_LEAST, len(outcome)) else "", "muted"
    )


def _named(entry: CallEntry) -> str:
    """The subject of the call; of an edit the file alone, as the diff below shows the rest; of an answer nothing:
    it stands below.
    """
    facts = facts_of(entry)
    if facts.aside and not facts.waits and entry.state is CallState.SUCCEEDED:
        return ""
    name = main_argument(facts, entry.input) if entry.diff else ""
    return shortened(str(entry.input[name])) if name else subject_of(entry, entry.arguments)


def _meta(
    entry: CallEntry,
    context: BlockContext,
    state: CallState,
    role: str,
    back: str,
    *,
    brief: bool,
    details: int,
    timed: bool,
) -> tuple[Span, ...]:
    """State in words, attempt and duration: the headline's right end. `details`: how many of a recovery are said;
    `timed`: how long the call took too.
    """
    parts: list[tuple[str, str]] = []
    sign = CALL_STATES[state]
    word = _word(entry, state) or sign.word
    counted = ""
    if context.limit and state in (CallState.FAILED, CallState.RUNNING, CallState.WAITING):
        times = "" if state is CallState.RUNNING else " times"
        counted = f" {entry.attempt}{times if entry.attempt > context.limit else f'/{context.limit}'}"
    if state is CallState.FAILED:
        wrong = _wrong_call(entry)
        parts.append((wrong or f"failed{counted}", f"{role} bold"))
        if context.recovered:
            parts.append(("recovered later", "ok"))
    elif state is CallState.RUNNING:
        parts.append((f"try{counted}" if entry.attempt > 1 and counted else "running", role))
    elif entry.recovered:
        parts.append((" · ".join(recovered_words(entry.recovered, brief=brief)[:details]), "ok bold"))
    elif word:
        bold = state in (CallState.WAITING, CallState.BLOCKED, CallState.DENIED)
        parts.append((word, f"{role} bold" if bold else role))
    parts += [(said, "muted") for said in (_unasked(entry, state, brief=brief), _changed(entry)) if said]
    passed = entry.duration
    if state is CallState.RUNNING and entry.started is not None:
        passed = max(0.0, context.now - entry.started)
    if passed and timed:
        parts.append((seconds(passed), "muted"))
    spans: list[Span] = []
    for number, (text, style) in enumerate(parts):
        if number:
            spans.append(Span(" · ", f"faint{back}"))
        spans.append(Span(text, f"{style}{back}"))
    return tuple(spans)


def _changed(entry: CallEntry) -> str:
    return "+{} −{}".format(*diff_counts(entry.diff)) if entry.diff else ""


def _unasked(entry: CallEntry, state: CallState, *, brief: bool) -> str:
    """That nobody was asked about a call because it only reads; "" for any other."""
    if not entry.reads_only or state in (CallState.FAILED, CallState.CANCELLED):
        return ""
    return READS_ONLY if brief and len(_named(entry)) > _READABLE else RAN_UNASKED


def _word(entry: CallEntry, state: CallState) -> str:
    """Why a call was not executed, or what it found, in a word."""
    if state is CallState.SUCCEEDED and entry.failure is not None:
        return "no match"
    return entry.refusal if state is CallState.BLOCKED else ""


def recovered_words(incidents: Sequence[Incident], *, brief: bool) -> list[str]:
    """How a success recovered what had failed: by which try or in which other way, and after what help, if any."""
    incident = max(incidents, key=lambda found: found.times)
    recovery = incident.recovery
    if recovery is not None and recovery.how == "same_call":
        how = f"{ordinal(recovery.tries)} try"
    else:
        how = "another way" if brief else f"another way after {counted(incident.times, 'failure')}"
    help_ = {"answer": ["after your answer"], "note": ["after a note"]}.get(incident.helped_by, [])
    return ["RECOVERED", how, *help_]


_NEVER_MADE = (FailureKind.INVALID_TOOL_CALL, FailureKind.UNKNOWN_TOOL)


def _wrong_call(entry: CallEntry) -> str:
    """The fault of a call that was never executed (it has no count of attempts); empty for others."""
    failure = entry.failure
    return failure.kind.in_words if failure and failure.kind in _NEVER_MADE else ""


def _input(entry: CallEntry, width: int) -> list[Line]:
    """The whole input, nothing hidden, and the file with the whole output if the result is cut."""
    lines: list[Line] = []
    given = entry.input or ({"arguments": entry.arguments} if entry.arguments not in ("", "{}") else {})
    kept = [("whole output", entry.output_file)] if entry.output_file else []
    for key, value in (*given.items(), *kept):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        label = f"  {one_line(str(key))}: "
        for number, piece in enumerate(wrap(reveal(text), max(4, width - len(label)))[:OPENED]):
            lines.append(
                clip((Span(label if not number else " " * len(label), "muted"), Span(piece, "code")), width)
            )
    return lines


def _body(entry: CallEntry, width: int, context: BlockContext, state: CallState) -> list[Line]:
    facts = facts_of(entry)
    beyond = IN_FILE if entry.output_file else BEYOND
    if state in (CallState.REQUESTED, CallState.WAITING):
        return []
    if state in (CallState.RUNNING, CallState.DENIED, CallState.BLOCKED, CallState.CANCELLED):
        written = draw_text(
            entry.progress,
            width,
            _FOLDED_PROGRESS,
            context.expanded,
            at_end=True,
            whole=entry.all_progress,
            style="muted",
        )
        if state is CallState.RUNNING:
            return written
        lines = draw_text(entry.reason or unwrapped(entry.content), width, 3, context.expanded, style="muted")
        return [*written, *with_rule(lines, entry.rule, width)]
    if state in (CallState.FAILED, CallState.FOUND):
        message = unwrapped(entry.content) or (entry.failure.message if entry.failure else "")
        style = "" if _loud(entry, context) else "muted"
        at_end = facts.at_end
        lines = draw_text(
            message,
            width,
            _FOLDED_FAILURE,
            context.expanded,
            at_end=at_end,
            whole=not entry.output_file,
            beyond=beyond,
            style=style,
        )
        folded = bool(lines) and text_of(lines[0 if at_end else -1]).startswith("… ")
        cause = headline(message) if folded and not context.expanded else ""
        if not cause or any(cause[:_READABLE] in text_of(line) for line in lines):
            return lines
        return [clip((Span(cause, style),), width), *lines]
    if entry.diff:
        limit = None if context.expanded else facts.folded
        lines, left = draw_diff(entry.diff, width, limit)
        lines = [*lines, fold_line(left, width)] if left else lines
        # What formatters and checkers said stands below the first line; another program's tool only says what it did.
        remarks = entry.content.partition("\n")[2]
        style = "warn" if facts.edits else "muted"
        return [*lines, *draw_text(remarks, width, _REMARKS, context.expanded, style=style)]
    if facts.aside and not context.expanded:
        return []
    return draw_text(
        unwrapped(entry.content),
        width,
        facts.folded,
        context.expanded,
        at_end=facts.at_end,
        whole=not entry.output_file,
        beyond=beyond,
        style="muted",
    )


def draw_text(
    text: str,
    width: int,
    limit: int,
    expanded: bool,
    *,
    at_end: bool = False,
    whole: bool = True,
    beyond: str = BEYOND,
    style: str = "",
) -> list[Line]:
    """Output, folded to `limit` source lines from its beginning or its end; only what is shown is looked at.

    Not `whole`: there were more lines than these, and how many are hidden is not known. `beyond` says how those are
    reached that an opened block leaves out.
    """
    text = text.strip("\n")
    if not text.strip():
        return []
    total = text.count("\n") + 1
    keep = OPENED if expanded else limit
    kept = text.split("\n")
    if total > keep + 1:
        kept = text.rsplit("\n", keep)[1:] if at_end else text.split("\n", keep)[:keep]
    # A line without end is as good as a thousand lines: wrapped lines are bounded as well.
    room = 2 * OPENED if expanded else limit + 2
    groups: list[list[str]] = []
    cut = False
    for written in reversed(kept) if at_end else kept:
        if not room:
            cut = True
            break
        # What a carriage return wrote over is not hidden: it is gone.
        source = sanitize(written) if "\r" in written else written
        looked_at = source[-room * width * 2 :] if at_end else source[: room * width * 2]
        pieces = wrap(squeezed(sanitize(looked_at), width), width)
        cut = cut or len(pieces) > room or len(looked_at) < len(source)
        pieces = pieces[-room:] if at_end else pieces[:room]
        groups.append(pieces)
        room -= len(pieces)
    if at_end:
        groups.reverse()
    lines: list[Line] = [(Span(piece, style),) for pieces in groups for piece in pieces]
    hidden = total - len(kept)
    if not hidden and not cut:
        return lines
    what = "earlier" if at_end else "more"
    fold = fold_line(hidden if whole else 0, width, what, beyond if expanded else FOLD)
    return [fold, *lines] if at_end else [*lines, fold]


def with_rule(lines: list[Line], rule: str, width: int) -> list[Line]:
    """The id of a rule behind the last line, or below it if both do not fit."""
    if not rule:
        return lines
    span = Span(one_line(rule, 60), "muted")
    if lines and width_of(lines[-1]) + width_of((span,)) + 2 <= width:
        return [*lines[:-1], (*lines[-1], Span("  "), span)]
    return [*lines, clip((span,), width)]


def fold_line(count: int, width: int, what: str = "more", hint: str = FOLD) -> Line:
    """The line that stands for what is folded away; `count` source lines, 0: of no known number."""
    lines = counted(count, f"{what} line") if count else what
    return clip((Span(f"… {lines} ", "muted bold"), Span(hint, "muted")), width)
