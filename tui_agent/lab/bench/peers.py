"""The loop rules of other agents, written anew from what their sources say. No code is theirs.

| rule | version read | what it does |
|---|---|---|
| `opencode` | anomalyco/opencode, packages/opencode/src/session/processor.ts (stored commit 002d982) | the last three
|            | parts of *one* reply are the same call: permission `doom_loop` is asked for; in a run that nobody watches
|            | it is rejected, and a rejection ends the run |
| `doom-loop` | the same rule counted over replies, as it is commonly understood | |
| `openhands` | OpenHands/software-agent-sdk, stuck_detector.py at 611629e | of the last 20 events since
|             | the user spoke: four equal actions with equal observations, four equal actions that the harness could
|             | not run (after the third the model is told), three messages in a row, or an alternation over six: the
|             | run ends. What the model says with a call is part of the comparison |
| `gemini-cli` | google-gemini/gemini-cli, services/loopDetectionService.ts at 022f913 | five equal calls in a row: the
|              | first time the fifth is not run and the model is told, the second time the run ends. The check by a
|              | second model after 30 turns is left out |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from tui_agent.core import events

DOOM_LOOP = 3
SAME_OUTCOME, SAME_ERROR, MONOLOGUE, ALTERNATION, WINDOW = 4, 3, 3, 6, 20
GEMINI = 5

Does = Literal["goes on", "ask", "refuse", "stop"]


class Peer(Protocol):
    """A rule that watches a run."""

    def heard(self, event: events.Event) -> None:
        """One more event."""

    def before_call(self, tool: str, arguments: Mapping[str, Any]) -> Does:
        """The fate of a call that is about to run."""

    def before_request(self) -> Does:
        """The fate of the run before the next model call."""


def _same(tool: str, arguments: Mapping[str, Any]) -> str:
    return f"{tool}:{json.dumps(arguments, ensure_ascii=False)}"


@dataclass
class NoPeer:
    """No rule."""

    def heard(self, event: events.Event) -> None:
        pass

    def before_call(self, tool: str, arguments: Mapping[str, Any]) -> Does:
        return "goes on"

    def before_request(self) -> Does:
        return "goes on"


@dataclass
class DoomLoop(NoPeer):
    """OpenCode. `within_reply`: as its source reads."""

    within_reply: bool
    _newest: list[str] = field(default_factory=list)

    def heard(self, event: events.Event) -> None:
        if isinstance(event, events.ReplyFinished) and self.within_reply:
            self._newest = []

    def before_call(self, tool: str, arguments: Mapping[str, Any]) -> Does:
        self._newest = [*self._newest, _same(tool, arguments)][-DOOM_LOOP:]
        return "ask" if len(self._newest) == DOOM_LOOP and len(set(self._newest)) == 1 else "goes on"


@dataclass
class OpenHands(NoPeer):
    """OpenHands' stuck detector."""

    _events: list[tuple[str, str]] = field(default_factory=list)
    """Kind (action, observation, error, message, user) and what is compared."""
    _told: bool = False

    def heard(self, event: events.Event) -> None:
        match event:
            case events.RunStarted() | events.OperatorSpoke() | events.EscalationAnswered():
                self._events.append(("user", ""))
            case events.ReplyFinished(calls=calls, text=text):
                if not calls:
                    self._events.append(("message", text))
                self._events += [("action", f"{text}\0{call.name}\0{call.arguments}") for call in calls]
            case events.ToolFailed(failure=failure) if failure.kind is not events.FailureKind.TOOL_EXECUTION:
                self._events.append(("error", event.content))
            case events.ToolResult():
                self._events.append(("observation", event.content))
        del self._events[:-WINDOW]

    def before_request(self) -> Does:
        since = next((place for place, one in enumerate(reversed(self._events)) if one[0] == "user"), WINDOW)
        recent = self._events[-since:] if since else []
        actions = [text for kind, text in reversed(recent) if kind == "action"]
        results = [one for one in reversed(recent) if one[0] in {"observation", "error"}]
        errors = 0
        while errors < len(results) and results[errors][0] == "error" and _equal(actions, errors + 1):
            errors += 1
        if errors == SAME_ERROR and not self._told:
            self._told = True
            return "refuse"
        self._told = errors >= SAME_ERROR
        stuck = (
            _equal(actions, SAME_OUTCOME) and _equal(results, SAME_OUTCOME),
            errors > SAME_ERROR,
            [kind for kind, _ in recent[-MONOLOGUE:]] == ["message"] * MONOLOGUE,
            _alternate(actions) and _alternate(results),
        )
        return "stop" if any(stuck) else "goes on"


def _equal(newest: list[Any], count: int) -> bool:
    return len(newest) >= count and all(one == newest[0] for one in newest[:count])


def _alternate(newest: list[Any]) -> bool:
    return len(newest) >= ALTERNATION and all(
        newest[place] == newest[place + 2] for place in range(ALTERNATION - 2)
    )


@dataclass
class GeminiCli(NoPeer):
    """Gemini CLI's check of equal calls."""

    _last: str = ""
    _count: int = 0
    _detected: int = 0

    def before_call(self, tool: str, arguments: Mapping[str, Any]) -> Does:
        key = _same(tool, arguments)
        self._count = self._count + 1 if key == self._last else 1
        self._last = key
        if self._count < GEMINI:
            return "goes on"
        self._detected += 1
        self._count = 0
        return "refuse" if self._detected == 1 else "stop"


TOLD = {
    "openhands": "The same call with the same arguments gave the same error three times in a row. Repeating it "
    "will not work: read the error, and correct the arguments or take another way.",
    "gemini-cli": "System: a possible loop was detected: the same call came again and again. Take a step back, and "
    "go on only where you make progress, by another way.",
}
"""Words of a peer's rule for the model, in a message or in place of the result of a call that did not run."""
