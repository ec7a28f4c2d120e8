"""Cases as data: a task, a workspace, what is checked afterwards, the faults, and what a model does there.

A file of `cases/` holds families; a family is a template, and each of its cases fills in the names. What a model does
is written as steps: the call it begins with, what works instead, and the calls that a model in difficulty makes.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from tui_agent.core.names import FaultKind
from tui_agent.core.tool_facts import OWN, named

CASES = Path(__file__).with_name("cases")

Visible = Literal["explicit", "implicit", "negative"]
"""explicit: an error says it; implicit: the result is wrong and says nothing; negative: nothing is wrong."""


class CaseError(ValueError):
    """A file of cases is wrong; the message names the place and the values that are allowed."""


@dataclass(frozen=True)
class Call:
    """A call that a model makes; `raw` in place of arguments that are no JSON object of the tool's."""

    tool: str
    arguments: Mapping[str, Any]
    raw: str = ""

    @property
    def sent(self) -> str:
        """The arguments as they are sent."""
        return self.raw or json.dumps(self.arguments, ensure_ascii=False)

    @classmethod
    def read(cls, value: Sequence[str]) -> Call:
        """Read a call from its list: the tool and its arguments in their order, or `!`, the tool and its raw arguments.

        Raises `CaseError`.
        """
        if len(value) == 3 and value[0] == "!":
            return cls(value[1], {}, value[2])
        names = tuple(named(value[0]).uses) if value else ()
        if not 1 < len(value) <= len(names) + 1:
            raise CaseError(f"{value!r} is no call: name one of {', '.join(OWN)}, then its arguments.")
        return cls(value[0], dict(zip(names, value[1:], strict=False)))


@dataclass(frozen=True)
class Step:
    """One thing to be done on the way to the goal.

    `call` comes first, and `cure` reaches its aim if it fails. `near`, `other` and `look` are the ways of
    models in difficulty: the same in almost the same words, something else that fails, something that shows
    more.
    """

    call: Call
    ok: str = ""
    """Text that the result holds when the step is done; empty: any result that is no error."""
    fails: bool = False
    """An error is expected here (a test first written, a probe): the step is done by it."""
    polls: bool = False
    """Until `ok` is seen, the same call again is the right thing to do."""
    silent: bool = False
    """The trouble here is in no error: the model goes on unless it sees it, or is told."""
    tell: str = ""
    """Words that name the way out if they stand in an error, a note or an answer."""
    only_told: bool = False
    """Nobody finds the way out without being told."""
    says: str = ""
    """The model's words with the call."""
    rut: str = ""
    """The way of a model that does not adapt here: same, near, alternate; empty: by its own habits."""
    near: tuple[Call, ...] = ()
    other: tuple[Call, ...] = ()
    look: tuple[Call, ...] = ()
    cure: tuple[Call, ...] = ()


@dataclass(frozen=True)
class InjectedFault:
    """Something that goes wrong at a seam.

    model: requests number `at` to `at + times - 1` fail with `kind` (times 0: from there on); or all before the
    second `until` of the run. tool: of the calls of `tool` whose arguments match, number `at` and the following: an
    error (`raises`), a success that did nothing (`says`), or an error after the effect (`after`); or all of them until
    the model was asked for reply number `back`. world: while reply number `at` is asked for, others write and remove
    files.
    """

    seam: Literal["model", "tool", "world"]
    at: int = 1
    times: int = 1
    kind: FaultKind = FaultKind.SERVER
    retry_after: float | None = None
    until: float = 0.0
    back: int = 0
    tool: str = ""
    match: str = ""
    effect: Literal["raises", "says", "after"] = "raises"
    message: str = ""
    transient: bool = False
    write: Mapping[str, str] = field(default_factory=dict)
    remove: tuple[str, ...] = ()

    def covers(self, count: int) -> bool:
        """True if the call or request of this number meets the fault."""
        return count >= self.at and (not self.times or count < self.at + self.times)


@dataclass(frozen=True)
class Check:
    """Conditions on a file afterwards: texts that it holds, lacks, or holds once; no file holds nothing."""

    file: str
    holds: str = ""
    lacks: str = ""
    once: str = ""

    def met(self, workspace: Path) -> bool:
        path = workspace / self.file
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        held = self.holds in text and not (self.lacks and self.lacks in text)
        return held and (not self.once or text.count(self.once) == 1)


@dataclass(frozen=True)
class Case:
    """One case; `id` is `family/name`."""

    id: str
    kind: str
    """The trouble, as a row of the report."""
    visible: Visible
    lasts: Literal["transient", "permanent", ""]
    task: str
    files: Mapping[str, str]
    check: tuple[Check, ...]
    steps: tuple[Step, ...]
    faults: tuple[InjectedFault, ...] = ()
    good: str = ""
    """The words of an operator who knows."""
    bad: str = "Just try it once more."
    """The words of one who does not."""
    needs_person: bool = False
    """Without somebody's answer it cannot be done."""
    claim: str = "Done: everything asked for is in place."
    """The model's last words."""
    verify: tuple[Step, ...] = ()
    """Its calls when these are sent back to be verified."""

    @property
    def negative(self) -> bool:
        return self.visible == "negative"

    @property
    def square(self) -> str:
        """Its field of the square, or `negative`."""
        return "negative" if self.negative else f"{self.visible}, {self.lasts}"

    def solved(self, workspace: Path) -> bool:
        """True if the workspace is as it was to be."""
        return all(check.met(workspace) for check in self.check)


@cache
def all_cases(folder: Path = CASES) -> tuple[Case, ...]:
    """Every case of the folder's files, in their order. Raises `CaseError`."""
    found: dict[str, Case] = {}
    for path in sorted(folder.glob("*.toml")):
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        for family in table.get("family", ()):
            for one in _cases(family, path.name):
                if one.id in found:
                    raise CaseError(f"{path.name}: the case {one.id} is there twice.")
                found[one.id] = one
    return tuple(found.values())


def chosen(patterns: Iterable[str], cases: Sequence[Case] | None = None) -> tuple[Case, ...]:
    """Cases whose id, family, kind or field of the square is one of `patterns`; all, if there are none."""
    cases = all_cases() if cases is None else cases
    wanted = tuple(patterns)
    names = {name for case in cases for name in _names(case)}
    unknown = [pattern for pattern in wanted if pattern not in names]
    if unknown:
        families = sorted({case.id.partition("/")[0] for case in cases})
        raise CaseError(f"There is no case {unknown[0]!r}. Families: {', '.join(families)}.")
    return tuple(case for case in cases if not wanted or _names(case) & set(wanted))


def _names(case: Case) -> set[str]:
    return {case.id, case.id.partition("/")[0], case.kind, case.visible, case.square}


def _cases(family: Mapping[str, Any], where: str) -> Iterable[Case]:
    shared = {key: value for key, value in family.items() if key != "case"}
    for values in family.get("case", ()):
        name = f"{family.get('name')}/{values.get('id')}"
        try:
            yield _case({**shared, **{k: v for k, v in values.items() if k in shared}}, values, name)
        except (CaseError, KeyError, TypeError, ValueError) as error:
            raise CaseError(f"{where}: the case {name}: {error}") from error


def _case(family: Mapping[str, Any], values: Mapping[str, Any], name: str) -> Case:
    table = _filled({key: value for key, value in family.items() if key != "name"}, values)
    steps, verify = (tuple(_steps(table.pop(key, ()))) for key in ("steps", "verify"))
    faults = tuple(_fault(fault) for fault in table.pop("faults", ()))
    check = tuple(Check(**one) for one in table.pop("check"))
    return Case(id=name, steps=steps, verify=verify, faults=faults, check=check, **table)


def _steps(tables: Sequence[Mapping[str, Any]]) -> Iterable[Step]:
    """The steps; a table with `each` stands for its steps once for each list of words, which are `<1>`, `<2>` …"""
    for table in tables:
        if "each" not in table:
            yield _step(table)
            continue
        for words in table["each"]:
            numbered = {str(place): word for place, word in enumerate(words, 1)}
            yield from (_step(_filled(step, numbered)) for step in table["steps"])


def _step(table: Mapping[str, Any]) -> Step:
    calls = {
        key: tuple(Call.read(call) for call in table.get(key, ()))
        for key in ("near", "other", "look", "cure")
    }
    rest = {key: value for key, value in table.items() if key not in calls and key != "call"}
    made: dict[str, Any] = {**calls, **rest, "call": Call.read(table["call"])}
    return Step(**made)


def _fault(table: Mapping[str, Any]) -> InjectedFault:
    numbers = {"kind": FaultKind, "at": int, "times": int, "back": int, "retry_after": float, "until": float}
    made = {key: numbers.get(key, lambda as_it_is: as_it_is)(value) for key, value in table.items()}
    made["remove"] = tuple(made.get("remove", ()))
    return InjectedFault(**made)


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    """The template with each `<name>` replaced, by a list if it stands alone for one."""
    if isinstance(value, str):
        if isinstance(values.get(value[1:-1]), list):
            return values[value[1:-1]]
        return re.sub(r"<(\w+)>", lambda found: str(values.get(found[1], found[0])), value)
    if isinstance(value, Mapping):
        return {_filled(key, values): _filled(each, values) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, values) for each in value]
    return value
