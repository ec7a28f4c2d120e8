"""Every recovery case once more, through the production loop: a session, its journal, a model and tools."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.agent.scripted import ScriptedOperator, scripted_tools
from tests.recovery.cases import Case, load_cases
from tui_agent import events as e
from tui_agent.agent.operator import EscalationReply
from tui_agent.config import Settings
from tui_agent.models.protocol import Delta, ModelFault, ModelRequest, Reply
from tui_agent.sessions.session import Session, open_session
from tui_agent.state import RunState
from tui_agent.tools.registry import ToolRegistry

TURNS = {"batch", "text", "invalid", "unknown", "model_fault"}


class CaseModel:
    """Plays a case's turns, one a model call, and then stays silent for good."""

    def __init__(self, turns: list[tuple[int, dict[str, Any]]]) -> None:
        self._turns = iter(turns)
        self.played: list[int] = []
        self.silent = asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        turn = next(self._turns, None)
        if turn is None:
            self.silent.set()
            await asyncio.Event().wait()
        else:
            number, event = turn
            self.played.append(number)
            if "model_fault" in event:
                kind = e.FaultKind(event["model_fault"])
                raise ModelFault(e.Fault(kind=kind, message="scripted", retry_after=0.0))
            yield Reply(text=event.get("text", ""), calls=tuple(_calls(number, event)))

    async def context_tokens(self, model: str) -> int | None:
        return None

    async def close(self) -> None:
        pass


def _calls(number: int, event: dict[str, Any]) -> list[e.ToolCall]:
    if "invalid" in event:
        return [
            e.ToolCall(id=f"{number}.0", name=event["invalid"]["tool"], arguments=event["invalid"]["raw"])
        ]
    batch = [event["unknown"]] if "unknown" in event else event.get("batch", [])
    return [
        e.ToolCall(id=f"{number}.{index}", name=call["tool"], arguments=json.dumps(call["input"]))
        for index, call in enumerate(batch)
    ]


class Watcher:
    """Remembers the verdict and the state after each of the case's events."""

    def __init__(self, model: CaseModel) -> None:
        self._model = model
        self.states: dict[int, RunState] = {}
        self.levels: dict[int, str] = {}
        self.blocked: set[int] = set()

    def __call__(self, event: e.Event, state: RunState) -> None:
        if not self._model.played or self._model.silent.is_set():
            return
        number = self._model.played[-1]
        if isinstance(event, e.ToolRefused) and event.refusal == "blocked":
            self.blocked.add(number)
        if isinstance(event, e.IterationFinished):
            self.states[number] = state
            self.levels[number] = "continue"
        if isinstance(event, e.VerdictReached):
            self.levels[number] = event.level


async def play(case: Case, tmp_path: Path) -> Watcher:
    """Run the case's events; operator's answers are given when they are asked for, new runs when they come."""
    turns = [(number, event) for number, event in enumerate(case.events, 1) if TURNS & event.keys()]
    outcomes = {
        f"{number}.{index}": None if call["ok"] else call.get("error", "failed")
        for number, event in turns
        for index, call in enumerate(event.get("batch", []))
    }
    names = [call["tool"] for _, event in turns for call in event.get("batch", [])]
    names += [event["invalid"]["tool"] for _, event in turns if "invalid" in event]
    model = CaseModel(turns)
    operator = ScriptedOperator(
        present=case.operator_present,
        answers=deque(
            EscalationReply("answer", event["operator"]) for event in case.events if "operator" in event
        ),
    )
    settings = Settings(
        model="case",
        policy=case.preset,
        approve=e.Approval.ALL,
        workspace=tmp_path,
        state_dir=tmp_path / "state",
    )
    session = await open_session(
        settings, operator, model, tools=ToolRegistry(scripted_tools(names or ["read_file"], outcomes))
    )
    watcher = Watcher(model)
    session.subscribe(watcher)
    for task in ["start", *(event["new_run"] for event in case.events if "new_run" in event)]:
        await session.submit(task)
        await _ended_or_silent(session, model)
    await session.close()
    return watcher


async def _ended_or_silent(session: Session, model: CaseModel) -> None:
    waits = {asyncio.create_task(session.wait()), asyncio.create_task(model.silent.wait())}
    _, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED, timeout=30)
    assert len(pending) < 2, "the run neither ended nor came to its end of the script"
    for task in pending:
        task.cancel()


def measures(state: RunState) -> dict[str, Any]:
    """What a case's `expect` names, as the state shows it."""
    recovery = state.recovery
    return {
        "ring": sum(slot is not None for slot in recovery.ring.slots),
        "attempts": max((entry.count for entry in recovery.attempts.newest_first()), default=0),
        "streak": recovery.streak.count,
        "confidence": pytest.approx(recovery.cognition.confidence),
        "stall": recovery.cognition.stall,
        "strategy": recovery.cognition.strategy,
    }


@pytest.mark.parametrize("case", load_cases(), ids=lambda case: case.id)
async def test_the_loop_does_what_the_case_says(case: Case, tmp_path: Path) -> None:
    watcher = await play(case, tmp_path)
    for expect in case.expect:
        number = expect["after"]
        wanted = {key: value for key, value in expect.items() if key not in {"after", "verdict", "blocked"}}
        shown = measures(watcher.states[number])
        assert {key: shown[key] for key in wanted} == wanted, f"after event {number}"
        if "verdict" in expect:
            assert watcher.levels[number] == expect["verdict"], f"after event {number}"
        if "blocked" in expect:
            assert (number in watcher.blocked) is expect["blocked"]
