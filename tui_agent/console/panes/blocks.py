"""Blocks of the conversation: each kind of entry drawn as lines, by pure functions of the entry and its context.

A block's look depends on nothing that moves, except for calls that run and waits that count down; so the lines
of a closed entry can be kept for as long as the width and its `BlockContext` stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from tui_agent.call_names import short_input
from tui_agent.console.panes.call_block import (
    FOLD,
    OPENED,
    draw_call,
    draw_text,
    fold_line,
    in_a_line,
    with_rule,
)
from tui_agent.console.panes.density import Density
from tui_agent.console.panes.prose import Prose
from tui_agent.core.names import ABOUT_PLAN, NOT_COMPLETED, UNDONE, UPDATE_PLAN
from tui_agent.core.receipt_lines import listed
from tui_agent.core.tool_facts import COMMAND_TOOL, named
from tui_agent.frontend.lines.account import account
from tui_agent.frontend.lines.glyphs import LEVELS, OUTCOMES, RECEIPTS, TIMELINE
from tui_agent.frontend.lines.styled import (
    Line,
    Span,
    clip,
    fit_middle,
    justified,
    width_of,
    wrap,
    wrap_spans,
)
from tui_agent.headline import headline
from tui_agent.quantities import clock_time, compact, counted, dollars, resets, seconds
from tui_agent.terminal_text import one_line, revealed_line, sanitize

if TYPE_CHECKING:
    from tui_agent.console.panes.block_context import BlockContext
    from tui_agent.console.panes.density import Lookups
    from tui_agent.core.projections import entries

FOLDED_MESSAGE = 12
"""Lines of a long message of the operator that are shown unopened."""

_REASONING_WORDS = 4_000
_WAIT_CELLS = 5
"""Characters of reasoning that are looked at to count its words."""


def draw_block(entry: entries.AnyEntry, width: int, context: BlockContext) -> list[Line]:
    """The entry's lines, at most `width` cells each."""
    return _DRAWERS[entry.kind](entry, max(4, width), context)


class RoughSize(NamedTuple):
    """An estimate of an entry's height without drawing it."""

    lines: int
    characters: int
    """Of text that is wrapped."""


def rough_heights(sizes: Iterable[RoughSize], width: int) -> list[int]:
    """About how many lines `draw_block` will give for entries of these sizes."""
    room = max(4, width - 2)
    return [lines + characters // room for lines, characters in sizes]


def rough_size(entry: entries.AnyEntry, density: Density) -> RoughSize:
    """The size of an entry, in a time that does not depend on wrapping."""
    text = ""
    if entry.kind == "call":
        if in_a_line(entry, density):
            return RoughSize(1, 0)
        body = entry.diff or entry.content
        return RoughSize(2 + min(6, body.count("\n") + 1 if body else 0), 0)
    if entry.kind == "reply" or entry.kind == "operator":
        text = entry.text
    elif entry.kind == "outcome":
        text = entry.answer + "\n" * len(entry.receipts)
    return RoughSize(3 + text.count("\n"), len(text))


def head_of(entry: entries.AnyEntry, context: BlockContext, width: int) -> list[Line]:
    """The separation of an entry from the one before: the iteration's rule, a blank line, or nothing."""
    previous = context.previous
    if previous is None:
        return [iteration_rule(entry.iteration, width)] if entry.iteration else []
    if follows_closely(entry, previous, context.density):
        return []
    fresh = entry.iteration and entry.iteration != previous.iteration
    if fresh and entry.kind != "outcome" and context.density is not Density.COMPACT:
        return [(), iteration_rule(entry.iteration, width)]
    return [()]


def follows_closely(
    entry: entries.AnyEntry | entries.OpenReply, previous: entries.AnyEntry, density: Density
) -> bool:
    """True if nothing stands between the two: calls of one step (compact: after its text, too); unless the
    density is full, all that goes on without a word or a failure.
    """
    joins = previous.kind == "call" or density is Density.COMPACT
    if entry.kind == "call" and entry.iteration == previous.iteration and joins:
        return True
    if density is Density.FULL or not (previous.kind == "call" or is_silent(previous)):
        return False
    return entry.state not in UNDONE if entry.kind == "call" else is_silent(entry)


def is_silent(entry: entries.AnyEntry | entries.OpenReply) -> bool:
    """A reply without a text: it waits, it only thinks, or it only thought."""
    if entry.kind == "reply":
        return not (entry.text or entry.partial)
    return entry.kind == "open_reply" and not entry.text


def draw_run(run: Lookups, width: int) -> Line:
    """The line that stands for calls that only look, or above them if they are shown."""
    named = "  ▾" if run.unfolded else f"  {one_line(run.names, 2 * width)}"
    return clip((Span("✓ ", "ok bold"), Span(run.words, "bold"), Span(named, "muted")), width)


def iteration_rule(iteration: int, width: int) -> Line:
    """A faint rule that names the step."""
    label = f"── step {iteration} "
    if width < len(label) + 4:
        label = f"── {iteration} "
    return clip(
        (Span("── ", "faint"), Span(label[3:], "muted"), Span("─" * max(0, width - len(label)), "faint")),
        width,
    )


def prefixed(lines: list[Line], first: Span, later: Span) -> list[Line]:
    """The lines with `first` before the first of them and `later` before the others."""
    return [(first if not number else later, *line) for number, line in enumerate(lines)]


# --- what was said -------------------------------------------------------------------------------------------


def _operator(entry: entries.OperatorEntry, width: int, context: BlockContext) -> list[Line]:
    back = "on:operator-background"
    keep = OPENED if context.expanded else FOLDED_MESSAGE
    text = sanitize(entry.text[: keep * width]).strip("\n")
    body = wrap(text, width - 3) or [""]
    cut = len(body) > keep + 1 or len(entry.text) > keep * width
    lines: list[Line] = []
    for number, piece in enumerate(body[:keep] if cut else body):
        sign = Span("» " if not number else "  ", f"operator bold {back}")
        lines.append((sign, Span(piece, f"bold {back}" if not number else back), Span("", back)))
    if cut:
        more = max(0, entry.text.count("\n") - "\n".join(body[:keep]).count("\n"))
        lines.append(fold_line(more, width))
    lines.extend(_ran(command, width) for command in entry.ran)
    for image in entry.images:
        sort = (Span("  ", back), Span(f"[{image.in_words}] ", f"operator {back}"))
        name = fit_middle(one_line(image.name, 200), width - width_of(sort))
        lines.append((*clip((*sort, Span(name, f"muted {back}")), width), Span("", back)))
    if entry.model:
        named = Span(one_line(entry.model, 200), f"model {back}")
        shown = (Span("  ", back), Span("for this run: ", f"muted {back}"), named)
        lines.append((*clip(shown, width), Span("", back)))
    return lines


def _ran(command: str, width: int) -> Line:
    """Says that a message brings the model what a command of the operator's own printed, which stands above."""
    back = "on:operator-background"
    named = Span(f"$ {revealed_line(command, 200)}", back)
    return (
        *clip((Span("  ", back), Span("with the output of ", f"muted {back}"), named), width),
        Span("", back),
    )


def _own_command(entry: entries.OwnCommandEntry, width: int, context: BlockContext) -> list[Line]:
    command = Span("$ ", "operator bold"), Span(revealed_line(entry.command, 600), "bold")
    ended = (Span(f"exit code {entry.exit_code}", "warn"),) if entry.exit_code else ()
    # The operator wants to see it: it may fill the pane, below its own line and with one left on each side.
    most = max(named(COMMAND_TOOL).folded, context.room - 3)
    printed = draw_text(entry.printed, width - 2, most, context.expanded, at_end=True, style="muted")
    return [justified(command, ended, width, 2), *prefixed(printed, *_INDENT)]


def draw_reply(
    prose: list[Line], reasoning: str, width: int, expanded: bool, thinking: bool = False
) -> list[Line]:
    """A reply: its reasoning folded to a line (or in full), then its text behind the model's sign."""
    lines: list[Line] = []
    sign, blank = Span("◆ ", "model bold"), Span("  ")
    if reasoning.strip():
        lines.extend(_reasoning(reasoning, width, expanded, thinking and not prose))
    if prose:
        lines.extend(prefixed(prose, sign, blank))
    return lines


def _reasoning(reasoning: str, width: int, expanded: bool, thinking: bool) -> list[Line]:
    if expanded:
        body = wrap(sanitize(reasoning).strip("\n"), width - 4)
        heading: Line = clip((Span("∴ ", "muted bold"), Span("reasoning", "muted italic")), width)
        return [heading, *((Span("  ┊ ", "faint"), Span(text, "muted italic")) for text in body)]
    if thinking:
        tail = one_line(reasoning[-4 * width :], 4 * width)
        label = "thinking  "
        room = width - 2 - len(label)
        shown = tail if len(tail) <= room else "…" + tail[-max(1, room - 1) :]
        return [
            clip((Span("∴ ", "muted bold"), Span(label, "muted bold"), Span(shown, "muted italic")), width)
        ]
    words = len(reasoning[:_REASONING_WORDS].split())
    more = "+" if len(reasoning) > _REASONING_WORDS else ""
    label = f"reasoning, {words}{more} word{'' if words == 1 and not more else 's'}"
    first = one_line(reasoning, 2 * width)
    return [clip((Span("∴ ", "muted bold"), Span(f"{label}  ", "muted"), Span(first, "muted italic")), width)]


def _reply(entry: entries.ReplyEntry, width: int, context: BlockContext) -> list[Line]:
    prose = context.prose or Prose(width - 2).finish(entry.text)
    lines = draw_reply(prose, entry.reasoning, width, context.expanded)
    if entry.partial:
        lines.append(
            clip(
                (
                    Span("  ╌╌ ", "warn"),
                    Span("interrupted" if entry.kept else "partial — cut", "warn bold"),
                    Span(
                        " · stays in the history as far as it came"
                        if entry.kept
                        else ", not kept in the history",
                        "muted",
                    ),
                ),
                width,
            )
        )
    return lines


# --- what happened -------------------------------------------------------------------------------------------


def _fault(entry: entries.FaultEntry, width: int, context: BlockContext) -> list[Line]:
    final = entry.action in ("stop", "degrade")
    role = "error" if final else "warn"
    back = " on:error-background" if final else ""
    style = f"{role} bold{back}"
    said = [Span(f"{_fault_name(entry)}: ", style), Span(one_line(entry.fault.message, 600), back.strip())]
    rule = (Span("  "), Span(one_line(entry.rule, 60), "muted")) if entry.rule else ()
    if _waits(entry, context):
        lines = wrap_spans([Span(f"try {entry.attempt}  ", "muted"), *said], width - 2)[:4]
        shown: list[Line] = [clip((Span("≈ ", style), *_wait(entry, context)), width)]
        shown.extend((Span("  "), *line) for line in lines)
    else:
        lines = wrap_spans(said, width - 2)[:4]
        shown = [
            (Span(("✗ " if final else "≈ ") if not number else "  ", style), *line, Span("", back.strip()))
            for number, line in enumerate(lines)
        ]
        shown.append(clip((Span("  "), *_what_then(entry), *rule), width))
    if context.expanded:
        shown.extend(_try(earlier, width) for earlier in entry.earlier)
    elif entry.earlier:
        count = counted(len(entry.earlier), "earlier try") if len(entry.earlier) == 1 else ""
        count = count or f"{len(entry.earlier)} earlier tries"
        shown.append(clip((Span(f"  … {count} ", "muted bold"), Span(FOLD, "muted")), width))
    if entry.fault.advice and (final or entry.action == "ask" or context.expanded):
        shown.extend(
            (Span("  → ", "note") if not number else Span("    "), Span(text))
            for number, text in enumerate(wrap(sanitize(entry.fault.advice), width - 4))
        )
    return shown


def _fault_name(entry: entries.FaultEntry) -> str:
    status = f" ({entry.fault.status})" if entry.fault.status else ""
    return f"{entry.fault.kind.in_words}{status}"


def _try(entry: entries.FaultEntry, width: int) -> Line:
    """An earlier try in a line."""
    waited = seconds(max(0.0, entry.until - entry.at))
    then = f"falling back to {one_line(entry.next_model)}" if entry.next_model else f"waited {waited}"
    words = f"  try {entry.attempt}: {_fault_name(entry)}, {then}  "
    return clip((Span(words, "muted"), Span(one_line(entry.fault.message, 300), "muted")), width)


def _waits(entry: entries.FaultEntry, context: BlockContext) -> bool:
    return entry.action in {"retry", "wait"} and context.open and context.waiting


def _wait(entry: entries.FaultEntry, context: BlockContext) -> list[Span]:
    """How long the next try still waits, and the keys that end it."""
    total = max(0.001, entry.until - entry.at)
    left = min(total, max(0.0, entry.until - context.now))  # however the clock jumps
    done = min(_WAIT_CELLS, max(0, round(_WAIT_CELLS * (1 - left / total))))
    limit = entry.action == "wait"
    what = resets(entry.until, context.now) if limit else str(entry.fault.status or entry.fault.kind.in_words)
    bar = "▰" * done + "▱" * (_WAIT_CELLS - done)
    return [
        Span(f"{what} ", "warn bold"),
        Span(f"{bar} {seconds(left)}", "warn"),
        Span(" · ", "muted"),
        Span("s", "accent bold"),
        Span(" skip the wait · ", "muted"),
        Span("c", "accent bold"),
        Span(" cancel", "muted"),
    ]


def _what_then(entry: entries.FaultEntry) -> list[Span]:
    tried = f"try {entry.attempt}"
    match entry.action:
        case "retry":
            went = f"tried again after {seconds(max(0.0, entry.until - entry.at))}"
            return [Span(f"{tried} failed, {went}", "muted")]
        case "wait":
            return [Span(f"{tried} failed, the limit resets at {clock_time(entry.until, entry.at)}", "muted")]
        case "fallback":
            return [
                Span(f"{tried} failed, falling back to ", "muted"),
                Span(one_line(entry.next_model), "model"),
            ]
        case "shrink":
            return [Span("the request is shortened and sent again", "muted")]
        case "text_calls":
            return [Span("it cannot call tools: its calls are written as text from now on", "muted")]
        case "next_iteration":
            return [Span(f"{tried} failed, the next step tries again", "muted")]
        case "ask":
            return [Span("▲ waits for you", "operator bold")]
        case "degrade":
            return [Span("▼ the run ends with a partial answer", "error bold")]
        case _:
            return [Span("■ the run stops", "error bold")]


def _note(entry: entries.NoteEntry, width: int, context: BlockContext) -> list[Line]:
    """New lines of the note, and the model's next act; opened: the whole of it."""
    sign, blank = Span("→ ", "note bold"), Span("  ")
    by_you = ", edited by you" if entry.edited else ""
    if context.expanded:
        head = clip(
            (sign, Span(f"note to the model{by_you}  ", "note"), Span(", ".join(entry.rules), "muted")), width
        )
        body: list[Line] = [
            (Span(line, "muted"),) for line in wrap(sanitize(entry.text).strip("\n"), width - 4)
        ]
        lines = [head, *prefixed(body, Span("  ┊ ", "faint"), Span("  ┊ ", "faint"))]
    else:
        fresh = entry.fresh or entry.text
        said = headline(fresh, 4 * width) if fresh else ""
        same = "" if entry.fresh else "as before: "
        lines = [clip((sign, Span(f"note{by_you}  ", "note"), Span(f"{same}{said}", "muted")), width)]
    then = "the model reads it now" if context.open else what_next(entry)
    return [*lines, clip((blank, Span("↳ ", "note"), Span(then, "muted" if context.open else "")), width)]


def what_next(entry: entries.NoteEntry) -> str:
    """Say what the model did after the note: the same again, the call changed, or another approach."""
    if not entry.calls:
        return "replied without a call"
    keys = {key for _, key in entry.failed if key}
    if any(call.key in keys for call in entry.calls):
        return "tried the same call again"
    tools = dict.fromkeys(tool for tool, _ in entry.failed)
    # A plan that is brought up to date is no other approach.
    acting = [call for call in entry.calls if call.name != UPDATE_PLAN] or entry.calls
    call = next((call for call in acting if call.name in tools), acting[0])
    if not entry.failed:
        return f"went on with {_named(call.name, call.arguments)}"
    if call.name in tools:
        return f"changed the call: {_named(call.name, call.arguments)}"
    return f"changed approach: {', '.join(map(one_line, tools))} → {_named(call.name, call.arguments)}"


def _named(tool: str, arguments: str) -> str:
    return f"{one_line(tool)} {short_input(tool, {}, arguments)}".strip()


def _notice(entry: entries.NoticeEntry, width: int, context: BlockContext) -> list[Line]:
    glyph, role = {"warning": ("!", "warn"), "error": ("✗", "error")}.get(entry.severity, ("i", "muted"))
    style = role if entry.severity != "info" else "muted"
    body: list[Line] = [(Span(text, style),) for text in wrap(sanitize(entry.text).strip("\n"), width - 2)]
    body = with_rule(body, entry.rule, width - 2)
    return prefixed(body, Span(f"{glyph} ", f"{role} bold"), Span("  "))


def _escalation(entry: entries.EscalationEntry, width: int, context: BlockContext) -> list[Line]:
    sign = LEVELS["escalate"]
    asks = "asks you" if not entry.choice else "would have asked you" if entry.unasked else "asked you"
    source = one_line(entry.rule or entry.source.replace("_", " "))
    asked: list[Line] = [(Span(text),) for text in wrap(sanitize(entry.in_words).strip("\n"), width - 2)]
    head = clip(
        (
            Span(f"{sign.glyph} ", "operator bold"),
            Span(asks, "operator bold"),
            Span(f"  {source}", "muted"),
        ),
        width,
    )
    if not context.expanded and len(asked) > 6:
        left = len(asked) - 5
        asked = [*asked[:5], (Span(f"… {counted(left, 'more line')} {FOLD}", "muted"),)]
    if entry.source == ABOUT_PLAN and not said_already(entry.question, context.previous):
        asked = [*Prose(width - 2).finish(entry.question), (), *asked]
    lines = [head, *prefixed(asked, Span("  "), Span("  "))]
    back = "on:operator-background"
    answer = wrap(sanitize(entry.answer).strip("\n"), width - 3) or [""]
    for number, text in enumerate(answer if entry.choice else ()):
        sign_span = Span("» " if not number else "  ", f"operator bold {back}")
        lines.append((sign_span, Span(text, f"bold {back}"), Span("", back)))
    lines.extend(_ran(command, width) for command in entry.ran)
    return [clip(line, width) for line in lines]


def _summary(entry: entries.SummaryEntry, width: int, context: BlockContext) -> list[Line]:
    sign = TIMELINE["window"]
    steps = counted(entry.groups, "step")
    rule = Span(f"  {one_line(entry.rule, 60)}" if entry.rule else "", "muted")
    if entry.failed:
        title = Span("no summary ", "warn bold"), Span(f"of {steps}" if entry.groups else "", "warn"), rule
        body: list[Line] = [(Span(text),) for text in wrap(sanitize(entry.failed), width - 2)]
        return [clip((Span(f"{sign.glyph} ", "warn bold"), *title), width), *prefixed(body, *_INDENT)]
    sizes = f"  {compact(entry.tokens_before)} → {compact(entry.tokens_after)} tokens"
    title = Span(f"{steps} summarised", f"{sign.role} bold"), Span(sizes), rule
    by = [one_line(entry.model), seconds(entry.duration), "" if entry.cost is None else dollars(entry.cost)]
    if entry.afresh:
        sign = LEVELS["restart"]
        by = [one_line(entry.afresh)]
    lines = [
        clip((Span(f"{sign.glyph} ", f"{sign.role} bold"), *title), width),
        clip((Span("  "), Span(" · ".join(part for part in by if part), "muted")), width),
    ]
    if context.expanded:
        return [*lines, *prefixed(Prose(width - 2).finish(entry.summary), *_INDENT)]
    first = one_line(entry.summary, 4 * width)
    more = Span(f"  {FOLD}", "muted")
    shown = clip((Span(first, "muted italic"),), max(1, width - 2 - len(more.text)))
    return [*lines, clip((Span("  "), *shown, more), width)]


_INDENT = Span("  "), Span("  ")


def _outcome(entry: entries.OutcomeEntry, width: int, context: BlockContext) -> list[Line]:
    sign = OUTCOMES.get(str(entry.outcome), OUTCOMES["error"])
    loud = sign.role == "error"
    back = " on:error-background" if loud else ""
    rows: list[Line] = [(Span(f"{sign.glyph} {sign.word}", f"{sign.role} bold{back}"),)]
    for part in (*account(entry), *([one_line(entry.rule, 60)] if entry.rule else [])):
        added = (*rows[-1], Span(f" · {part}", f"muted{back}"))
        if width_of(added) <= width:
            rows[-1] = added
        else:
            rows.append((Span(f"  {part}", f"muted{back}"),))
    lines: list[Line] = [(Span("━" * width, sign.role),)]
    lines.extend((*line, Span("", back.strip())) for row in rows for line in wrap_spans(row, width))
    if entry.reason and NOT_COMPLETED not in entry.answer:
        lines.extend(
            (Span(text, f"{'' if loud else 'muted'}{back}".strip()), Span("", back.strip()))
            for text in wrap(sanitize(entry.reason), width)
        )
    if entry.answer.strip() and not said_already(entry.answer, context.previous):
        lines.append(())
        lines.extend(prefixed(Prose(width - 2).finish(entry.answer), Span("◆ ", "model bold"), Span("  ")))
    for standing, words in listed(entry.receipts):
        mark = RECEIPTS[standing]
        rest = wrap_spans((Span(sanitize(words), "muted"),), max(1, width - 2))
        lines.extend(prefixed(rest, Span(f"{mark.glyph} ", mark.role), Span("  ")))
    return lines


def said_already(answer: str, previous: entries.AnyEntry | None) -> bool:
    """Tell if the entry before holds the same text: a reply, or the question about a plan."""
    said = ""
    if previous is not None and previous.kind == "reply":
        said = previous.text
    elif previous is not None and previous.kind == "escalation" and previous.source == ABOUT_PLAN:
        said = previous.question
    return bool(said) and said.strip() == answer.strip()


_DRAWERS: dict[str, Callable[[Any, int, BlockContext], list[Line]]] = {
    "operator": _operator,
    "own_command": _own_command,
    "reply": _reply,
    "call": draw_call,
    "fault": _fault,
    "note": _note,
    "notice": _notice,
    "escalation": _escalation,
    "summary": _summary,
    "outcome": _outcome,
}
