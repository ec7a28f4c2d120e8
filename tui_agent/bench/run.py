"""One run: a case, a model, a contestant and an operator, through the production loop; what came of it is a row."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tui_agent.bench.behaviours import BEHAVIOURS, Machine
from tui_agent.bench.case import Case
from tui_agent.bench.clock import Clock
from tui_agent.bench.kept import MemoryCheckpoints, RememberingBash
from tui_agent.bench.operators import BenchOperator, Kind
from tui_agent.bench.peers import TOLD
from tui_agent.bench.policies import Contestant
from tui_agent.bench.seams import FaultyModel, World
from tui_agent.config.settings import Settings
from tui_agent.core import events
from tui_agent.core.names import unanswered
from tui_agent.core.result import result_of
from tui_agent.core.state import RunState
from tui_agent.models.protocol import Model
from tui_agent.store.journal import JOURNAL_NAME
from tui_agent.store.opening import open_session
from tui_agent.store.session import Session
from tui_agent.tools.errors import ToolError
from tui_agent.tools.registry import ToolRegistry, default_tools

MOST_ITERATIONS = 30
_HANGS = 600.0
"""Seconds of the real clock after which a run is a fault of the benchmark; a scripted one takes far less."""


@dataclass(frozen=True)
class Unit:
    """What is paired: the same case, model and seed under every contestant."""

    case: str
    behaviour: str
    """Name of a behaviour, or of a real model."""
    seed: int


@dataclass(frozen=True)
class Row:
    """The figures of one run. Times in seconds of the run's own clock; None: it did not come to that."""

    case: str
    behaviour: str
    seed: int
    policy: str
    operator: str
    family: str
    kind: str
    square: str
    negative: bool
    needs_person: bool
    solved: bool
    """The workspace is as it was to be, and the run ended with an answer."""
    done: bool
    """The workspace is as it was to be, however the run ended."""
    outcome: str
    rule: str
    iterations: int
    tool_calls: int
    tool_errors: int
    failures: int
    same_call: int
    worked_round: int
    unrecovered: int
    model_faults: int
    questions: int
    """Put to somebody who was there."""
    refusals: int
    pivots: int
    notes: int
    tokens: int
    seconds: float
    until_person: float | None
    """Until somebody was asked, or the run ended without its answer."""
    recovery_steps: int | None
    """From the first failure until none was open."""
    recovery_tokens: int | None
    cost: float | None

    @property
    def interrupted(self) -> bool:
        """Recovery did more than give advice: it asked, refused, turned the model round or ended the run."""
        return bool(self.questions or self.refusals or self.pivots or self.outcome != "answered")


@dataclass
class _Watch:
    """What a listener counts that the result does not say."""

    refusals: int = 0
    pivots: int = 0
    notes: int = 0
    failed_at: tuple[int, int] | None = None
    recovered_at: tuple[int, int] | None = None
    rules: list[str] = field(default_factory=list)

    def heard(self, event: events.Event, state: RunState) -> None:
        match event:
            case events.ToolRefused():
                self.refusals += 1
            case events.VerdictReached(level=level):
                self.pivots += level is events.Level.PIVOT
            case events.ModelCallStarted(note=str()):
                self.notes += 1
        metrics = state.metrics
        if not metrics.failures:
            return
        here = state.run.iteration, metrics.usage.tokens
        if self.failed_at is None:
            self.failed_at = here
        if metrics.unrecovered:
            self.recovered_at = None
        elif self.recovered_at is None:
            self.recovered_at = here


@dataclass(frozen=True)
class RealModel:
    """A model that costs money: how it is called."""

    settings: Settings

    def settings_for(self, workspace: Path, state_dir: Path, contestant: Contestant) -> Settings:
        """The operator's own settings for its calls, with the contestant's recovery."""
        return self.settings.replaced(
            workspace=workspace,
            state_dir=state_dir,
            policy=contestant.policy,
            recovery=dict(contestant.recovery),
            approve="all",
            max_iterations=MOST_ITERATIONS,
            mcp=False,
        )


def _scripted_settings(workspace: Path, state_dir: Path, contestant: Contestant) -> Settings:
    return Settings(
        model="machine",
        workspace=workspace,
        state_dir=state_dir,
        policy=contestant.policy,
        recovery=dict(contestant.recovery),
        approve="all",
        sandbox={"mode": "off"},
        max_iterations=MOST_ITERATIONS,
        mcp=False,
    )


async def run_unit(
    case: Case,
    unit: Unit,
    contestant: Contestant,
    operator: Kind,
    scratch: Path,
    journal: Path,
    real: RealModel | None = None,
) -> Row:
    """One run. `scratch` is an empty place for its workspace; its journal goes to the folder `journal`."""
    workspace, state_dir = scratch / "workspace", scratch / "state"
    for folder in (workspace, state_dir):
        shutil.rmtree(folder, ignore_errors=True)
    _write(case.files, workspace)
    clock = Clock()
    peer = contestant.watcher()
    watch = _Watch()
    made: list[Session] = []
    stopping: list[asyncio.Task[None]] = []

    def stop(reason: str) -> None:
        stopping.append(asyncio.get_running_loop().create_task(made[0].stop(reason)))

    async def ends(reason: str) -> None:
        stop(reason)
        await asyncio.Event().wait()

    async def before_call(tool: str, arguments: Mapping[str, Any]) -> None:
        match peer.before_call(tool, arguments):
            case "ask" if asked.present:
                await asked.think()
                if asked.kind != "badly":
                    raise ToolError(f"The operator rejected this call, and said: {asked.words}")
            case "ask" | "stop":
                await ends(f"{contestant.peer} ended the run.")
            case "refuse":
                raise ToolError(TOLD[contestant.peer])

    async def next_note(note: str | None) -> str | None:
        match peer.before_request():
            case "stop":
                await ends(f"{contestant.peer} ended the run.")
            case "refuse":
                return TOLD[contestant.peer]
        return note

    if real is None:
        settings = _scripted_settings(workspace, state_dir, contestant)
        model: Model | None = Machine(case, BEHAVIOURS[unit.behaviour], unit.seed, clock)
        tools = _scripted_tools()
    else:
        from tui_agent.models.choose import ModelByName

        settings = real.settings_for(workspace, state_dir, contestant)
        model, tools = ModelByName(settings), default_tools(settings.command_timeout)
    asked = BenchOperator(operator, case, clock, stop, next_note, unanswered(contestant.policy, None))
    world = World(case.faults, workspace, clock, before_call, real_time=real is not None)
    session = await open_session(
        settings,
        asked,
        FaultyModel(model, case.faults, clock),
        tools=world.around(tools),
        environment=None if real else {},
        clock=clock,
        checkpoints=None if real else MemoryCheckpoints(workspace),
    )
    made.append(session)

    def heard(event: events.Event, state: RunState) -> None:
        watch.heard(event, state)
        peer.heard(event)
        if isinstance(event, events.ModelFaulted) and event.delay and real is None:
            asyncio.get_running_loop().call_soon(_skip, session, clock, event.delay)

    session.subscribe(heard)
    try:
        await session.submit(case.task)
        await asyncio.wait_for(session.wait(), _HANGS)
        state = session.state
    finally:
        await session.close()
    journal.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(journal, ignore_errors=True)
    journal.mkdir()
    shutil.copyfile(session.folder / JOURNAL_NAME, journal / JOURNAL_NAME)
    return _row(case, unit, contestant, asked, watch, state, clock, workspace)


def _scripted_tools() -> ToolRegistry:
    tools = default_tools()
    wanted = ("read_file", "write_file", "edit_file", "glob", "grep", "list_dir", "ask_operator", "finish")
    return ToolRegistry([*(tool for name in wanted if (tool := tools.get(name))), RememberingBash()])


def _skip(session: Session, clock: Clock, delay: float) -> None:
    """A wait for the provider goes by on the run's clock alone."""
    if session.skip_wait():
        clock.pass_(delay)


def _write(files: Mapping[str, str], workspace: Path) -> None:
    workspace.mkdir(parents=True)
    for name, content in files.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        if content.startswith("#!"):
            path.chmod(0o755)


def _row(
    case: Case,
    unit: Unit,
    contestant: Contestant,
    operator: BenchOperator,
    watch: _Watch,
    state: RunState,
    clock: Clock,
    workspace: Path,
) -> Row:
    result = result_of(state)
    done = case.solved(workspace)
    answered = result.outcome is events.Outcome.ANSWERED
    needed = operator.first_asked if operator.first_asked is not None else None if answered else clock.passed
    recovered = watch.recovered_at if watch.failed_at is not None else None
    steps, tokens = (
        (recovered[0] - watch.failed_at[0], recovered[1] - watch.failed_at[1])
        if recovered is not None and watch.failed_at is not None
        else (None, None)
    )
    return Row(
        **asdict(unit),
        policy=contestant.name,
        operator=operator.kind,
        family=case.id.partition("/")[0],
        kind=case.kind,
        square=case.square,
        negative=case.negative,
        needs_person=case.needs_person,
        solved=done and answered,
        done=done,
        outcome=result.outcome.value,
        rule=result.rule or "",
        iterations=result.iterations,
        tool_calls=result.tool_calls,
        tool_errors=result.tool_errors,
        failures=result.failures,
        same_call=result.recovered_same_call,
        worked_round=result.recovered_worked_round,
        unrecovered=result.unrecovered,
        model_faults=result.model_faults,
        questions=operator.asked,
        refusals=watch.refusals,
        pivots=watch.pivots,
        notes=watch.notes,
        tokens=state.metrics.usage.tokens,
        seconds=round(clock.passed, 3),
        until_person=None if needed is None else round(needed, 3),
        recovery_steps=steps,
        recovery_tokens=tokens,
        cost=state.metrics.usage.cost,
    )
