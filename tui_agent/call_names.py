"""How a tool call is named in one line: its main argument, made safe and short."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from tui_agent.core.names import UPDATE_PLAN
from tui_agent.core.projections.plan import plan_of
from tui_agent.core.tool_facts import OfTool, ToolFacts, facts_of, named
from tui_agent.terminal_text import one_line, reveal

_USUAL_NAMES = ("command", "cmd", "file_path", "pattern", "query", "url", "path", "question", "arguments")
"""Of main arguments of other programs' tools, the most telling first."""
_LIMIT = 400
_BESIDE = 120
_LONG = 40
"""Characters of an argument's value that are shown beside others."""
_PLAIN = re.compile(r"[^\s\"'=]+")
_PARSED = 10_000
"""Characters of a call that is parsed only to be shown."""


class Call(OfTool, Protocol):
    """A call, or what is left of one."""

    @property
    def input(self) -> Mapping[str, Any]: ...


def subject_of(call: Call, raw: str = "", telling: Collection[str] = ()) -> str:
    """Give the subject of a call on one safe line (see `short_input`)."""
    return short_input(call.tool, call.input, raw, telling, facts_of(call))


def short_input(
    tool: str,
    arguments: Mapping[str, Any],
    raw: str = "",
    telling: Collection[str] = (),
    facts: ToolFacts | None = None,
) -> str:
    """Give a call's main argument on one safe line; for a tool that names none with all others, the `telling` first.

    `raw` is the text as the model sent it, for calls that were not or could not be parsed; `facts` are the tool's
    (None: those that its name says).
    """
    facts = facts or named(tool)
    arguments = arguments or _parsed(raw)
    if tool == UPDATE_PLAN and (plan := plan_of(arguments)).steps:
        return one_line(plan.summary, _LIMIT)
    if not arguments:
        return shortened(raw) if raw not in ("", "{}") else ""
    name = main_argument(facts, arguments)
    if name and name == facts.subject:
        others = [other for other in telling if other != name]
        known = shortened(str(arguments[name])) + _rest(facts, arguments)
        return " ".join(
            [known, *(_with_name(other, arguments[other]) for other in others if other in arguments)]
        )
    rest = [
        _with_name(other, value) for other, value in arguments.items() if other != name and other in telling
    ]
    rest += [
        _with_name(other, value)
        for other, value in arguments.items()
        if other != name and other not in telling
    ]
    return shortened(" ".join([str(arguments[name]), *rest] if name else rest))


def telling_arguments(calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[frozenset[str]]:
    """For each call of a list, the arguments that tell it from those of the same tool and main argument."""
    alike: dict[tuple[str, object], list[Mapping[str, Any]]] = {}
    for tool, arguments in calls:
        alike.setdefault(_shown_alone(tool, arguments), []).append(arguments)
    return [
        frozenset(
            name
            for name, value in arguments.items()
            if any(other.get(name) != value for other in alike[_shown_alone(tool, arguments)])
        )
        for tool, arguments in calls
    ]


def _shown_alone(tool: str, arguments: Mapping[str, Any]) -> tuple[str, object]:
    return tool, arguments.get(main_argument(named(tool), arguments))


def _with_name(name: str, value: object) -> str:
    written = value if isinstance(value, str) and _PLAIN.fullmatch(value) else _as_json(value)
    return f"{one_line(name)}={shortened(written, _LONG)}"


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def main_argument(facts: ToolFacts, arguments: Mapping[str, Any]) -> str:
    """Find the name of the argument that tells most, a text; "" if none does."""
    names = (facts.subject, *_USUAL_NAMES)
    return next((name for name in names if isinstance(arguments.get(name), str) and arguments[name]), "")


def _parsed(raw: str) -> Mapping[str, Any]:
    """The arguments in a call's text that nobody has parsed yet; {} if the text is too long to parse at each
    draw.
    """
    try:
        found = json.loads(raw) if len(raw) <= _PARSED else None
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


def shortened(text: str, limit: int = _LIMIT) -> str:
    """`text` on one line with nothing hidden: controls spelled out, and beginning and end of what is too long."""
    if len(text) > 10 * limit:
        text = f"{text[: 5 * limit]} … {text[-5 * limit :]}"
    line = " ".join(reveal(text).split())
    return line if len(line) <= limit else f"{line[: limit // 2]} … {line[-limit // 2 :]}"


def _rest(facts: ToolFacts, arguments: Mapping[str, Any]) -> str:
    """Say the argument that follows the subject: the folder of a search, the first line of a read."""
    for name, form in facts.beside:
        value = arguments.get(name)
        if value and isinstance(value, str | int):
            return form.format(one_line(str(value), _BESIDE))
    return ""


def of_lane(title: str, lane: str) -> str:
    """A question's title, with the sub-agent whose question it is ("": the run's own)."""
    return f"{title} (sub-agent: {one_line(lane, 60)})" if lane else title
