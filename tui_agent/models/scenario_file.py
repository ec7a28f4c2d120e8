"""Reading scenarios: TOML into the values of `scenario`, each mistake named by file, key and what is allowed.

The format is described in `scenarios/README.md`. Nothing is played or written here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from tui_agent.core.names import APPROVALS, POLICIES, FaultKind
from tui_agent.disk import user_path
from tui_agent.models.scenario import (
    Caption,
    CaptionMoment,
    Condition,
    Pace,
    Scenario,
    ScriptedCall,
    ScriptedFault,
    Turn,
    placeholders,
)
from tui_agent.models.scenario_checks import (
    ScenarioError,
    Table,
    allowed_values,
    known_keys,
    nearest,
    number,
    pattern,
    text,
    texts,
    whole_number,
)

SCENARIO_FOLDER = Path(__file__).resolve().parent.parent / "scenarios"


def scenario_names() -> list[str]:
    """Names of the built-in scenarios, sorted."""
    return sorted(path.stem for path in SCENARIO_FOLDER.glob("*.toml"))


def load_scenario(name_or_path: str | Path) -> Scenario:
    """A built-in scenario by its name, or one from a file (anything with a separator or ending in `.toml`).

    Raises `ScenarioError` when there is none, or when the file is not a scenario.
    """
    given = str(name_or_path)
    is_path = isinstance(name_or_path, Path) or given.endswith(".toml") or "/" in given
    path = user_path(given) if is_path else SCENARIO_FOLDER / f"{given}.toml"
    if not is_path and given not in scenario_names():
        known = ", ".join(scenario_names())
        raise ScenarioError(
            f"There is no scenario named {given!r}{nearest(given, scenario_names())}. "
            f"It is one of: {known}; or give the path of a scenario's TOML file."
        )
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(
            f"The scenario {path} cannot be read: {error}. Give a readable TOML file."
        ) from error
    return parse_scenario(source, name=path.stem, origin=str(path))


def parse_scenario(source: str, *, name: str = "scenario", origin: str = "scenario") -> Scenario:
    """A scenario from TOML text; `origin` is what errors name. Raises `ScenarioError`."""
    try:
        data = tomllib.loads(source)
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"{origin} is not TOML: {error}. Correct that line.") from error
    return scenario_from(data, name=name, origin=origin)


_SCENARIO_KEYS = (
    "title",
    "description",
    "task",
    "policy",
    "approve",
    "max_iterations",
    "context_tokens",
    "pace",
    "files",
    "captions",
    "turns",
)


def scenario_from(data: Mapping[str, Any], *, name: str = "scenario", origin: str = "scenario") -> Scenario:
    """A scenario from the tables of a parsed file. Raises `ScenarioError`: file, key and what fits."""
    table = Table(dict(data), origin)
    known_keys(table, _SCENARIO_KEYS)
    pace = _pace(table, Pace())
    turns = read_turns(table.tables("turns"), pace)
    if not turns:
        raise ScenarioError(
            f"{origin}: `turns` is missing or empty. A scenario needs at least one [[turns]]."
        )
    return Scenario(
        name=name,
        turns=turns,
        title=text(table, "title") or name,
        description=text(table, "description"),
        task=text(table, "task").strip(),
        files=_files(table),
        policy=allowed_values(table, "policy", POLICIES) or "combined",
        approve=allowed_values(table, "approve", APPROVALS) or "all",
        max_iterations=whole_number(table, "max_iterations"),
        context_tokens=whole_number(table, "context_tokens"),
        pace=pace,
        captions=tuple(_caption(each) for each in table.tables("captions")),
    )


def _caption(table: Table) -> Caption:
    known_keys(table, ("moment", "text"))
    moment = allowed_values(table, "moment", tuple(CaptionMoment))
    words = " ".join(text(table, "text").split())
    if not (moment and words):
        raise ScenarioError(
            f"{table.where} needs `moment` and `text`. A moment is one of: {', '.join(CaptionMoment)}."
        )
    return Caption(CaptionMoment(moment), words)


def read_turns(tables: Iterable[Table], pace: Pace) -> tuple[Turn, ...]:
    """The turns, with their labels and placeholders checked against one another. Raises `ScenarioError`."""
    read = [(table.where, _turn(table, pace)) for table in tables]
    turns = tuple(turn for _, turn in read)
    labels = [turn.label for turn in turns if turn.label]
    names = {name for turn in turns for each in (turn.when, turn.unless) if each for name in each.names}
    for where, turn in read:
        if turn.label and labels.count(turn.label) > 1:
            raise ScenarioError(
                f"{where}.label: {turn.label!r} is on two turns. Give each a name of its own."
            )
        if turn.next and turn.next not in labels:
            raise ScenarioError(
                f"{where}.next: there is no turn labelled {turn.next!r}{nearest(turn.next, labels)}. "
                f"Labels are: {', '.join(labels) or 'none'}."
            )
        for name in sorted(placeholders(turn) - names):
            raise ScenarioError(
                f"{where}: {{{{{name}}}}} is captured by no condition. "
                f"Named groups are: {', '.join(sorted(names)) or 'none'}."
            )
    return turns


_TURN_KEYS = (
    "label",
    "when",
    "unless",
    "anywhere",
    "next",
    "repeat",
    "reasoning",
    "text",
    "calls",
    "fault",
    "finish_reason",
    "usage",
    "pace",
)


def _turn(table: Table, pace: Pace) -> Turn:
    known_keys(table, _TURN_KEYS)
    usage = table.table("usage")
    known_keys(usage, ("prompt", "completion", "cached", "cost"))
    repeat = whole_number(table, "repeat")
    return Turn(
        label=text(table, "label"),
        when=_condition(table.table("when")) if "when" in table.data else None,
        unless=_condition(table.table("unless")) if "unless" in table.data else None,
        anywhere=table.flag("anywhere"),
        next=text(table, "next"),
        repeat=max(1, repeat or 1),
        reasoning=text(table, "reasoning"),
        text=text(table, "text"),
        calls=tuple(_call(call) for call in table.tables("calls")),
        fault=_fault(table.table("fault")) if "fault" in table.data else None,
        finish_reason=text(table, "finish_reason"),
        prompt_tokens=whole_number(usage, "prompt"),
        completion_tokens=whole_number(usage, "completion"),
        cached_tokens=whole_number(usage, "cached"),
        cost=number(usage, "cost"),
        pace=_pace(table, pace) if "pace" in table.data else None,
    )


def _call(table: Table) -> ScriptedCall:
    known_keys(table, ("tool", "args", "raw"))
    tool = text(table, "tool")
    if not tool:
        raise ScenarioError(
            f'{table.where}.tool is missing. Name the tool to call, for instance tool = "bash".'
        )
    if "raw" in table.data and "args" in table.data:
        raise ScenarioError(
            f"{table.where} has both `args` and `raw`. Keep `args` for a proper call, `raw` for broken text."
        )
    raw = text(table, "raw") if "raw" in table.data else None
    return ScriptedCall(tool, table.table("args").data, raw)


def _fault(table: Table) -> ScriptedFault:
    known_keys(table, ("kind", "message", "status", "retry_after", "resets_in", "advice"))
    kind = allowed_values(table, "kind", tuple(FaultKind))
    if not kind:
        raise ScenarioError(f"{table.where}.kind is missing. It is one of: {', '.join(FaultKind)}.")
    return ScriptedFault(
        kind,
        text(table, "message"),
        whole_number(table, "status"),
        number(table, "retry_after"),
        number(table, "resets_in"),
        text(table, "advice"),
    )


def _condition(table: Table) -> Condition:
    places = ("recent", "results", "user", "earlier", "model")
    known_keys(table, (*places, "tools", "tools_missing"))
    found = {place: tuple(pattern(table, place, each) for each in texts(table, place)) for place in places}
    return Condition(
        recent=found["recent"],
        results=found["results"],
        user=found["user"],
        earlier=found["earlier"],
        model=found["model"],
        tools=tuple(texts(table, "tools")),
        tools_missing=tuple(texts(table, "tools_missing")),
    )


def _pace(parent: Table, base: Pace) -> Pace:
    table = parent.table("pace")
    known_keys(table, ("chars", "interval", "pause"))
    chars = table.data.get("chars", list(base.chars))
    if not (
        isinstance(chars, list)
        and len(chars) == 2
        and all(isinstance(each, int) and each > 0 for each in chars)
        and chars[0] <= chars[1]
    ):
        raise ScenarioError(
            f"{table.where}.chars is {chars!r}. "
            "It is two whole numbers, smallest and largest piece, like [3, 8]."
        )
    interval = number(table, "interval")
    pause = number(table, "pause")
    return Pace(
        (chars[0], chars[1]),
        base.interval if interval is None else interval,
        base.pause if pause is None else pause,
    )


def _files(parent: Table) -> dict[str, str]:
    table = parent.table("files")
    for name in table.data:
        path = PurePosixPath(name)
        if not name or path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name:
            raise ScenarioError(
                f"{table.where}.{name!r} leads out of the workspace. Use a relative path without `..`."
            )
        text(table, name)
    return dict(table.data)
