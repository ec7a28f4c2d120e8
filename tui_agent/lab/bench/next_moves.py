"""What a real model's replies at failing steps are: moves, their shares by condition, and the page that says them.

A reply is read as the program reads that of a model that writes its calls as text. Shares are those of points, and
differences are paired by point and sample; intervals draw the cases anew (`figures.bootstrap`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from tui_agent.core.request import text_calls
from tui_agent.core.request.written_calls import written_calls
from tui_agent.lab.bench.case import Call
from tui_agent.lab.bench.figures import Estimate, bootstrap
from tui_agent.lab.bench.notes import CONDITIONS, Point, Sampled, Scene, as_call, same_call

REPEATS, NEARLY, NAMED, ANOTHER = "repeats", "nearly repeats", "a way out", "another call"
GIVES_UP, ANSWERS, BREAKS_FORM = "gives up", "answers", "breaks form"
MOVES = (REPEATS, NEARLY, NAMED, ANOTHER, GIVES_UP, ANSWERS, BREAKS_FORM)

PAGE = "moves.md"

ALIKE = 0.85
"""Likeness of arguments from which on a call is nearly the same; that of the counted habits."""
BASE = "nothing"
"""The condition that the others are compared with."""
_GAVE_UP = re.compile(
    r"\b(?:cannot|can't|could ?n[o']t|unable|impossible|not possible|sorry|failed to|does not exist|did not succeed)\b",
    re.IGNORECASE,
)


def move_of(point: Point, reply: Sampled, tools: Mapping[str, Sequence[str]]) -> str:
    """The move that a reply makes. `tools`: the arguments that each tool requires."""
    call = _call_in(reply.text, tools.keys())
    if call is None:
        if reply.cut:
            return BREAKS_FORM
        return GIVES_UP if _GAVE_UP.search(reply.text) else ANSWERS
    if call.raw or call.tool not in tools or any(name not in call.arguments for name in tools[call.tool]):
        return BREAKS_FORM
    if call.tool == "finish":
        return GIVES_UP if _GAVE_UP.search(call.sent) else ANSWERS
    if same_call(call, point.call):
        return REPEATS
    if _leads_out(point, call):
        return NAMED
    return NEARLY if _nearly_same(call, point.call, tools[call.tool]) else ANOTHER


def _nearly_same(call: Call, other: Call, required: Sequence[str]) -> bool:
    """True if only options differ (`timeout`, `background`), or a few letters."""
    if call.tool != other.tool:
        return False
    if required and all(call.arguments[name] == other.arguments.get(name) for name in required):
        return True
    return difflib.SequenceMatcher(None, other.sent, call.sent).ratio() >= ALIKE


def _call_in(text: str, tools: AbstractSet[str]) -> Call | None:
    """The call that the program would carry out, or find broken; None if the reply is its answer."""
    said = text_calls.read(text, tuple(tools))
    if said.problem is None and said.called:
        return as_call(said.name, said.arguments)
    own = written_calls(text, tools)
    if own is not None and len(own.calls) == 1:
        return as_call(own.calls[0].name, own.calls[0].arguments)
    return Call(said.name, {}, text) if said.called else None


def _leads_out(point: Point, call: Call) -> bool:
    """True if a call is a way out: it holds the word that tells, or all in which a way differs from what failed."""
    if point.words and re.search(point.words, call.sent):
        return True
    return any(
        call.tool == way.tool
        and all(
            _plain(call.arguments.get(name)) == _plain(value)
            for name, value in way.arguments.items()
            if way.tool != point.call.tool or point.call.arguments.get(name) != value or name == "path"
        )
        for way in point.ways
    )


def _plain(value: object) -> str:
    return str(value).strip()


class Shares(NamedTuple):
    """One condition: the share of each move, and by how much it is above that under `nothing` at the same points."""

    condition: str
    share: Mapping[str, Estimate]
    gain: Mapping[str, Estimate]


Made = Mapping[tuple[str, int], Mapping[str, str]]
"""By point and sample: the move under each condition."""


def moves(scene: Scene, replies: Iterable[Sampled]) -> Made:
    """Every point and sample at which each condition has its reply."""
    tools = {
        str(tool["function"]["name"]): tuple(tool["function"]["parameters"].get("required", ()))
        for tool in scene.tools
    }
    points = {point.id: point for point in scene.points}
    found: dict[tuple[str, int], dict[str, str]] = {}
    for reply in replies:
        made = found.setdefault((reply.point, reply.sample), {})
        made[reply.condition] = move_of(points[reply.point], reply, tools)
    return {key: made for key, made in found.items() if made.keys() >= CONDITIONS.keys()}


def shares(made: Made, keys: Sequence[tuple[str, int]] | None = None) -> list[Shares]:
    """Of each condition; `keys`: at these points alone."""
    chosen = sorted(made) if keys is None else keys
    return [
        Shares(
            condition,
            {move: bootstrap([(_case(key), float(made[key][condition] == move)) for key in chosen]) for move in MOVES},
            {
                move: bootstrap([
                    (_case(key), float(made[key][condition] == move) - float(made[key][BASE] == move))
                    for key in chosen
                ])
                for move in MOVES
            },
        )
        for condition in CONDITIONS
    ]  # fmt: skip


def _case(key: tuple[str, int]) -> str:
    return key[0].partition("#")[0]


def moved(made: Made, condition: str, to: AbstractSet[str]) -> Estimate:
    """How often a condition turns a model that would not have made one of these moves to one of them."""
    stubborn = [key for key in sorted(made) if made[key][BASE] not in to]
    return bootstrap([(_case(key), float(made[key][condition] in to)) for key in stubborn])


# --- the page ---------------------------------------------------------------------------------------------------

TURNED = (
    ("takes the way that is named", "named", frozenset({NAMED})),
    ("minds a note", "note", frozenset({NAMED, ANOTHER})),
    ("minds a refusal", "refused", frozenset({NAMED, ANOTHER})),
)
"""The assumptions of `behaviours.py`, as moves to which a condition turns a model that would not have made them."""


def page(scene: Scene, replies: Sequence[Sampled]) -> str:
    """The tables, in Markdown."""
    made = moves(scene, replies)
    keys = sorted(made)
    points, cases = {point for point, _ in keys}, {_case(key) for key in keys}
    lines = [
        "# The next move at a failing step, by what the model reads",
        "",
        "<!-- Written by `agent-tui bench notes`. Do not edit. -->",
        "",
        f"`{scene.model}`: {len(keys)} replies under each condition, at {len(points)} failing steps of",
        f"{len(cases)} cases ({len(scene.points)} steps were made). Below the shares stands by how many percentage",
        f"points each is above that under `{BASE}`, paired by point and sample, with the 95 % interval. Bold: the",
        "interval does not hold 0.",
        "",
        *table(["what it reads", *MOVES], [line for one in shares(made) for line in _lines(one)]),
    ]
    for row in sorted({_row(key) for key in keys}):
        at = [key for key in keys if _row(key) == row]
        lines += ["", f"## The call has failed {_TIMES[row]}: {len(at)} replies under each condition", ""]
        lines += table(["what it reads", *MOVES], [_line(one) for one in shares(made, at)])
    lines += [
        "",
        "## What the machines of the bench assume",
        "",
        f"Of the replies that were another move under `{BASE}`, the share that became such a move:",
        "",
    ]
    turned = [(name, condition, moved(made, condition, to)) for name, condition, to in TURNED]
    lines += table(
        ["assumption", "condition", "share", "interval", "replies"],
        [
            [
                name,
                f"`{condition}`",
                _percent(one.mean),
                f"{_percent(one.low)}–{_percent(one.high)}",
                str(one.count),
            ]
            for name, condition, one in turned
        ],
    )
    return "\n".join([*lines, ""])


_TIMES = {1: "once", 2: "twice", 3: "three times"}


def _row(key: tuple[str, int]) -> int:
    return int(key[0].rpartition("#")[2])


def _line(one: Shares) -> list[str]:
    return [f"`{one.condition}`", *(_percent(one.share[move].mean) for move in MOVES)]


def _lines(one: Shares) -> Iterable[list[str]]:
    yield _line(one)
    if one.condition != BASE:
        yield ["", *(_gap(one.gain[move]) for move in MOVES)]


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"


def _gap(one: Estimate) -> str:
    said = f"{100 * one.mean:+.0f} ({100 * one.low:+.0f} to {100 * one.high:+.0f})"
    return f"**{said}**" if one.decided else said


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    rule = ["---", *("---:" for _ in heading[1:])]
    return [f"| {' | '.join(cells)} |" for cells in (heading, rule, *rows)]
