"""Scenarios: a model's part written down as data, with the workspace that it works in.

Here live the values (turns, conditions, calls, faults) and the writing of a scenario's files; reading them
from TOML is `scenario_file`'s, playing them `scripted`'s. Nothing here imports pydantic or a model library,
so that a demo's title and task are at hand before the first paint.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

from tui_agent.models.scenario_checks import ScenarioError

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True)
class Pace:
    """How a turn streams. Times in seconds; a `ScriptedModel` can scale them all, to 0 for tests."""

    chars: tuple[int, int] = (3, 8)
    """Smallest and largest piece."""
    interval: float = 0.02
    """Between two pieces."""
    pause: float = 0.0
    """Before the first piece."""


class RequestView:
    """The words of a request, for conditions; each part is made when it is first asked for."""

    def __init__(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = (), model: str = ""
    ) -> None:
        """`messages` and `tools` in OpenAI's chat form."""
        self._messages = messages
        self._tools = tools
        self.model = model

    @cached_property
    def results(self) -> str:
        """Tool results since the model's last message."""
        return _said(self._recent, "tool")

    @cached_property
    def user(self) -> str:
        """User messages since the model's last message: the task, the operator's words, the recovery note."""
        return _said(self._recent, "user")

    @property
    def recent(self) -> str:
        """Results and user messages since the model's last message."""
        return f"{self.results}\n{self.user}"

    @cached_property
    def earlier(self) -> str:
        """Everything said in the conversation, by anybody but the system prompt."""
        return _said(self._messages, "user", "assistant", "tool")

    @cached_property
    def tools(self) -> frozenset[str]:
        """Names of the tools on offer."""
        return frozenset(str(tool.get("function", {}).get("name", "")) for tool in self._tools)

    @cached_property
    def _recent(self) -> list[Mapping[str, Any]]:
        recent: list[Mapping[str, Any]] = []
        for message in reversed(self._messages):
            if message.get("role") == "assistant":
                break
            recent.append(message)
        recent.reverse()
        return recent


def _said(messages: Sequence[Mapping[str, Any]], *roles: str) -> str:
    return "\n".join(
        content
        for message in messages
        if message.get("role") in roles and isinstance(content := message.get("content"), str)
    )


@dataclass(frozen=True)
class Condition:
    """All of it must hold. Patterns are searched for (`re.search`, multi-line)."""

    recent: tuple[re.Pattern[str], ...] = ()
    results: tuple[re.Pattern[str], ...] = ()
    user: tuple[re.Pattern[str], ...] = ()
    earlier: tuple[re.Pattern[str], ...] = ()
    model: tuple[re.Pattern[str], ...] = ()
    tools: tuple[str, ...] = ()
    tools_missing: tuple[str, ...] = ()

    def match(self, request: RequestView) -> dict[str, str] | None:
        """The named groups of its patterns when it holds (often none), else None."""
        if not request.tools.issuperset(self.tools) or request.tools.intersection(self.tools_missing):
            return None
        captured: dict[str, str] = {}
        for place in ("recent", "results", "user", "earlier", "model"):
            for wanted in getattr(self, place):
                found = wanted.search(getattr(request, place))
                if found is None:
                    return None
                captured.update({name: value or "" for name, value in found.groupdict().items()})
        return captured

    @property
    def names(self) -> frozenset[str]:
        """Named groups that the patterns can capture."""
        patterns = (*self.recent, *self.results, *self.user, *self.earlier, *self.model)
        return frozenset(name for each in patterns for name in each.groupindex)


@dataclass(frozen=True)
class ScriptedCall:
    """A tool call: `arguments` as a table, or `raw` text exactly as a model might (mis)write it."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    raw: str | None = None


@dataclass(frozen=True)
class ScriptedFault:
    """A fault that ends the turn, after its text. `retry_after` in seconds."""

    kind: str
    message: str = ""
    status: int | None = None
    retry_after: float | None = None
    resets_in: float | None = None
    """Seconds until the limit that was reached resets."""
    advice: str = ""


@dataclass(frozen=True)
class Turn:
    """One answer of the scripted model to one request."""

    label: str = ""
    when: Condition | None = None
    unless: Condition | None = None
    anywhere: bool = False
    """Tried before the script's place at every request; afterwards the script goes on at its place."""
    next: str = ""
    """Label of the turn to go on with; empty: the one that follows."""
    repeat: int = 1
    """How many requests in a row it answers."""
    reasoning: str = ""
    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    fault: ScriptedFault | None = None
    finish_reason: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None
    pace: Pace | None = None

    def match(self, request: RequestView) -> dict[str, str] | None:
        """Texts that its condition captured if the turn may be played, else None."""
        if self.unless is not None and self.unless.match(request) is not None:
            return None
        return {} if self.when is None else self.when.match(request)


class CaptionMoment(StrEnum):
    """When a caption is shown: once, as soon as it holds of the run's state."""

    BEGUN = "begun"
    FAILED = "failed"
    ANOTHER_WAY = "another way"
    RECOVERED = "recovered"
    MODEL_FAULT = "model fault"
    SUMMARISED = "summarised"
    APPROVAL = "approval"
    QUESTION = "question"
    DONE = "done"


@dataclass(frozen=True)
class Caption:
    """Words for a newcomer about the screen at a moment."""

    moment: CaptionMoment
    text: str


@dataclass(frozen=True)
class Scenario:
    """A script, its workspace and what to run it with."""

    name: str
    turns: tuple[Turn, ...]
    title: str = ""
    description: str = ""
    task: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    policy: str = "combined"
    approve: str = "all"
    max_iterations: int | None = None
    context_tokens: int | None = None
    pace: Pace = Pace()
    captions: tuple[Caption, ...] = ()

    @property
    def labels(self) -> dict[str, int]:
        """Label → place of the turn."""
        return {turn.label: place for place, turn in enumerate(self.turns) if turn.label}


def filled(template: str, captured: Mapping[str, str]) -> str:
    """The text with each `{{name}}` replaced by the captured text, or by nothing."""
    return _PLACEHOLDER.sub(lambda found: captured.get(found[1], ""), template)


def placeholders(turn: Turn) -> set[str]:
    """Names that the turn's words and arguments want filled in."""
    pieces = [turn.text, turn.reasoning]
    for call in turn.calls:
        pieces.append(call.raw or "")
        pieces.extend(_strings_in(call.arguments))
    return {name for piece in pieces for name in _PLACEHOLDER.findall(piece)}


def _strings_in(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [found for each in value.values() for found in _strings_in(each)]
    if isinstance(value, list | tuple):
        return [found for each in value for found in _strings_in(each)]
    return []


def materialise(scenario: Scenario, folder: Path) -> list[Path]:
    """Write the scenario's files below `folder` (made if it is missing) and give their paths.

    Raises `ScenarioError` when a symbolic link would lead a file out of the folder; `OSError` as it comes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    root = folder.resolve()
    written: list[Path] = []
    for name, content in scenario.files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink() or not path.parent.resolve().is_relative_to(root):
            raise ScenarioError(
                f"The scenario's file {name!r} would be written outside {folder}, through a symbolic link. "
                "Use an empty folder."
            )
        path.write_text(content, encoding="utf-8")
        written.append(path)
    return written
