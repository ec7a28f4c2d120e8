"""The answer to "why?" about one failure, verdict or outcome, in sections below each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tui_agent.frontend.lines.glyphs import LEVELS
from tui_agent.frontend.lines.styled import Line, Span, clip, pad, squeezed, width_of, wrap, wrap_spans
from tui_agent.terminal_text import one_line, sanitize

if TYPE_CHECKING:
    from tui_agent.frontend.why import Count, Why


_PLACEHOLDER = re.compile("(<(?:time|duration|address|tmp|process|uuid|port|hex)>)")


LONGEST = 40
"""Lines of one text that are shown."""


_BESIDE = 24
"""Cells beside a detector's verdict that are enough for what it counted."""


_BRIEF = 12
"""Lines of a text whose whole stands elsewhere."""


def why_lines(why: Why, width: int) -> Iterator[Line]:
    """The sections below each other."""
    for part in (_happened, _next, _counted, _rule, _compared, _read):
        yield from part(why, width)


def _happened(why: Why, width: int) -> Iterator[Line]:
    step = f"step {why.step}" if why.step else ""
    yield clip((Span("What happened", "accent bold"), Span(f"  {step}", "muted")), width)
    yield from _text(why.title, width, "bold")
    yield from _text(why.happened, width, "")
    yield from _text(why.cause, width, "error")
    if why.raw.strip() not in {why.cause, why.read.strip()}:
        yield from _text(why.raw, width, "muted", indent=2, longest=_BRIEF)


def _compared(why: Why, width: int) -> Iterator[Line]:
    if not why.normalised:
        return
    left_out = _PLACEHOLDER.search(why.normalised) is not None
    beside = "what changes from one time to the next is left out" if left_out else "word for word"
    yield from _section("Compared as", beside, width)
    if left_out:
        yield from _placeholders(why.normalised, width)
    if why.same_as:
        steps = ", ".join(str(step) for step in why.same_as)
        yield from _text(f"the same as in step {steps}", width, "warn")


def _counted(why: Why, width: int) -> Iterator[Line]:
    if why.counts:
        yield from _section("What the detectors counted", "", width)
    for count in why.counts:
        yield from _count(count, width)


def _read(why: Why, width: int) -> Iterator[Line]:
    if not (why.read or why.note):
        return
    yield from _section("What the model read", "", width)
    yield from _text(why.read, width, "muted", indent=2)
    if why.note:
        yield from _text("and then, as a note:", width, "")
        yield from _text(why.note, width, "note", indent=2)


def _rule(why: Why, width: int) -> Iterator[Line]:
    if not why.rule:
        return
    yield from _section("The rule", why.rule, width)
    if why.section is not None:
        yield from _text(why.section.does, width, "")
        for label, text in why.section.lines.items():
            yield from _text(f"{label}: {text}", width, "muted")


def _next(why: Why, width: int) -> Iterator[Line]:
    if why.next:
        yield from _section("What comes next", "", width)
        yield from _text(why.next, width, "bold")


def _section(title: str, beside: str, width: int) -> Iterator[Line]:
    yield ()
    head = (Span(title, "accent bold"), Span(f"  {one_line(beside, 120)}" if beside else "", "muted"))
    yield clip(head, width)


def _text(text: str, width: int, style: str, indent: int = 0, longest: int = LONGEST) -> Iterator[Line]:
    room = max(8, width - indent)
    shown = "\n".join(squeezed(line, room) for line in sanitize(text).strip("\n").split("\n"))
    lines = wrap(shown, room) if text.strip() else []
    left_out = len(lines) - longest
    if left_out > 1:
        half = longest // 2
        lines = [*lines[:half], f"… {left_out} lines left out …", *lines[-half:]]
    for line in lines:
        yield (Span(" " * indent), Span(line, style))


def _placeholders(text: str, width: int) -> Iterator[Line]:
    """The text as it is compared; its placeholders stand out."""
    pieces = _PLACEHOLDER.split(one_line(text, 1_000))
    spans = [Span(piece, "accent bold" if place % 2 else "muted") for place, piece in enumerate(pieces)]
    yield from wrap_spans(spans, width)


def _count(count: Count, width: int) -> Iterator[Line]:
    sign = LEVELS.get(count.level, LEVELS["continue"])
    loud = count.level not in {"", "continue"}
    head = (
        Span(f"{sign.glyph} ", sign.role if loud else "faint"),
        Span(pad(count.detector, 11), "bold" if loud else "muted"),
        Span(f"{count.level} {count.rule}  " if loud else "", sign.role),
    )
    style = "" if loud else "muted"
    text = one_line(count.stands or count.reason, 400)
    room = width - width_of(head)
    lines = wrap(text, room if room >= _BESIDE else width - 13)
    yield clip((*head, Span(lines.pop(0) if room >= _BESIDE else "", style)), width)
    for line in lines:
        yield (Span(" " * 13), Span(line, style))
