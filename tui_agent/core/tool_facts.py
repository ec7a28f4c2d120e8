"""Facts about a tool: the effect of its calls, and how they are named, shown and counted.

A tool's class declares it (`tools.tool.Tool`). `own_tools` keeps a copy for this program's own tools, made from their
classes, so that a recording is read and judged without them. The facts of any other tool stand in its calls' events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal, Protocol

from tui_agent.core.own_tools import ROWS


class Effect(StrEnum):
    """The effect of a call: decides approval, order in a batch, and the state that a time-out leaves unknown."""

    READ = "read"
    WRITE = "write"
    """Files of the workspace, through the write and edit tools."""
    COMMAND = "command"
    """Anything."""
    NETWORK = "network"
    """Reads from elsewhere; changes nothing here."""
    DIALOGUE = "dialogue"
    """Asks the operator or ends the run; needs no approval."""
    TASK = "task"
    """Starts a sub-agent, whose calls are judged one by one."""


SIDE_BY_SIDE = frozenset({Effect.READ, Effect.TASK})
"""Effects whose calls run at the same time when they stand next to each other in a reply."""
UNTOUCHED = frozenset({Effect.READ, Effect.NETWORK, Effect.DIALOGUE})
"""Effects that leave the workspace as it is."""
UNRECORDED = frozenset({Effect.READ, Effect.DIALOGUE, Effect.TASK})
"""Effects that change and send nothing by themselves, so that no audit lists them."""
ACTING = frozenset({Effect.WRITE, Effect.COMMAND})
"""Effects by which something can be done; the others only read, ask, finish or plan."""


class Use(StrEnum):
    """The use of an argument of a tool."""

    READS = "reads"
    """It is a path, or several: what stands there is read or listed."""
    WRITES = "writes"
    """It is a path, or several: what stands there is changed."""
    RUNS = "runs"
    """It is a shell command."""
    SENDS = "sends"
    """It is an address, which is contacted."""
    SAYS = "says"
    """Text and figures that by themselves reach nothing."""
    ANYTHING = "anything"
    """Nobody here knows, as with a server's tool: rules that narrow take it for each of the others."""


Uses = Mapping[str, Use]
Looks = Literal["", "file", "search", "folder", "other"]


@dataclass(frozen=True)
class ToolFacts:
    """The facts of one tool. What is left out is not known of it."""

    effect: Effect | None = None
    uses: Uses = field(default_factory=dict)
    """The use of each of a call's arguments."""
    subject: str = ""
    """The argument that names a call in a line, without the others; "": the most telling one, and the others."""
    beside: tuple[tuple[str, str], ...] = ()
    """Arguments that follow the subject, each with its form (`" in {}"`); the first one that is given is said."""
    label: str = ""
    """The name of the tool as people read it; "": its own."""
    looks: Looks = ""
    """The thing that a call shows, if it does nothing else."""
    works: bool = True
    """A call that succeeds says something about the work."""
    acts: bool = False
    """A call does something although its effect leaves files and network alone."""
    waits: bool = False
    """A call that runs waits for the operator."""
    folded: int = 4
    """Lines of a result that a screen shows unopened."""
    at_end: bool = False
    """Those are its last lines."""

    @property
    def edits(self) -> bool:
        """Its calls change files by their own word."""
        return self.effect is Effect.WRITE

    @property
    def looks_only(self) -> bool:
        """Its calls cannot change anything here."""
        return self.effect in UNTOUCHED and not self.acts

    @property
    def aside(self) -> bool:
        """Its calls are shown as something else: the answer, a question, the plan."""
        return self.effect is Effect.DIALOGUE or not self.works

    def argument(self, use: Use) -> str:
        """The argument with this use; "" if there is none."""
        return next((name for name, one in self.uses.items() if one is use), "")


class OfTool(Protocol):
    """Anything that belongs to a call of a tool: its events, its entry of the conversation."""

    @property
    def tool(self) -> str: ...
    @property
    def facts(self) -> ToolFacts | None: ...


def _of_row(row: Mapping[str, Any]) -> ToolFacts:
    uses = {name: Use(use) for name, use in row.get("uses", {}).items()}
    return ToolFacts(**{**row, "effect": Effect(row["effect"]), "uses": uses})


OWN: Mapping[str, ToolFacts] = MappingProxyType({name: _of_row(row) for name, row in ROWS.items()})
"""The facts of this program's tools, by name."""
COMMAND_TOOL = next(name for name, facts in OWN.items() if facts.argument(Use.RUNS))
"""The tool for shell commands, by whose name rules about commands are written."""
UNKNOWN = ToolFacts()


def named(tool: str) -> ToolFacts:
    """The facts of a tool of which only the name is known: of this program's own, or none."""
    return OWN.get(tool, UNKNOWN)


def facts_of(call: OfTool) -> ToolFacts:
    """The facts of a call's tool: this program's own by its name, another's as its events carry them."""
    return call.facts or named(call.tool)


def carried(tool: str, facts: ToolFacts) -> ToolFacts | None:
    """Give what the events of a tool's calls say of it; None for this program's own, known by their names."""
    known = {name: use for name, use in facts.uses.items() if use is not Use.ANYTHING}
    return None if tool in OWN else replace(facts, uses=known)


def told(facts: ToolFacts | None) -> dict[str, Any] | None:
    """Give facts as an event holds them: those that are no defaults."""
    if facts is None:
        return None
    said = ((one.name, getattr(facts, one.name)) for one in fields(facts))
    return {name: value for name, value in said if value != getattr(UNKNOWN, name)}
