"""One run: a case, a model, a contestant and an operator, through the production loop; what came of it is a row."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from tui_agent.config.settings import Settings
from tui_agent.core import events
from tui_agent.core.names import unanswered
from tui_agent.core.result import result_of
from tui_agent.core.state import RunState
from tui_agent.lab.bench.advisers import ADVISER, AdvisedModel
from tui_agent.lab.bench.behaviours import BEHAVIOURS, Machine
from tui_agent.lab.bench.case import Case
from tui_agent.lab.bench.clock import Clock
from tui_agent.lab.bench.kept import MemoryCheckpoints, RememberingBash
from tui_agent.lab.bench.operators import BenchOperator, Kind
from tui_agent.lab.bench.peers import TOLD, NoPeer, Peer
from tui_agent.lab.bench.policies import Contestant
from tui_agent.lab.bench.seams import FaultyModel, World
from tui_agent.models.hosted import KeptHost
from tui_agent.models.protocol import Model
from tui_agent.session.opening import open_session
from tui_agent.session.session import Session
from tui_agent.store.journal import JOURNAL_NAME
from tui_agent.tools.errors import ToolError
from tui_agent.tools.registry import ToolRegistry, default_tools

MOST_ITERATIONS = 30
_HANGS = 600.0
"""Seconds of the real clock after which a run is a fault of the benchmark; a scripted one takes far less."""


@dataclass(frozen=True)
class Unit:
    """The key of a pair: the same case, model and seed under every contestant."""

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
    advised: int = 0
    """Times that the second model was asked."""
    advice_tokens: int = 0
    """Its part of the tokens."""

    @property
    def interrupted(self) -> bool:
        """Recovery did more than give advice: it asked, refused, turned the model round or ended the run."""
        return bool(self.questions or self.refusals or self.pivots or self.outcome != "answered")


@dataclass
class _Watch:
    """Counts of a listener that the result does not have."""

    refusals: int = 0
    pivots: int = 0
    notes: int = 0
    advised: int = 0
    advice_tokens: int = 0
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
            case events.Advised():
                self.advised += 1
                self.advice_tokens += (event.prompt_tokens or 0) + (event.completion_tokens or 0)
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
    """A model that costs money: how it is called. `host`: makes the calls in place of a host for each run."""

    settings: Settings
    host: KeptHost | None = None
    timed: bool = True
    """Its calls take their time on the run's clock too."""

    def model_for(self, settings: Settings, case: Case, unit: Unit) -> Model:
        """What is asked in a run with these settings."""
        from tui_agent.models.choose import ModelByName

        return ModelByName(settings, self.host)

    def tools_for(self, settings: Settings) -> ToolRegistry:
        """The tools of a run with these settings."""
        return default_tools(settings.command_timeout)

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


def scripted_settings(workspace: Path, state_dir: Path, contestant: Contestant) -> Settings:
    return Settings.model_validate({
        "model": "machine",
        "workspace": workspace,
        "state_dir": state_dir,
        "policy": contestant.policy,
        "recovery": {**contestant.recovery, "advisor": ADVISER if contestant.adviser else ""},
        "approve": "all",
        "sandbox": {"mode": "off"},
        "max_iterations": MOST_ITERATIONS,
        "mcp": False,
    })  # fmt: skip


class _Referee:
    """Stands between a run and its contestant: the peer's rule, who is asked, what is counted."""

    def __init__(
        self, case: Case, contestant: Contestant, operator: Kind, clock: Clock, model: Model
    ) -> None:
        self.watch = _Watch()
        self.model = FaultyModel(model, case.faults, clock)
        self.session: Session | None = None
        self._case = case
        self._contestant = contestant
        self._peer: Peer = contestant.watcher()
        self._clock = clock
        self._stopping: asyncio.Task[None] | None = None
        on_escalation = unanswered(contestant.policy, None)
        self.operator = BenchOperator(operator, case, clock, self._stop, self._next_note, on_escalation)

    def _stop(self, reason: str) -> None:
        if self.session is not None and self._stopping is None:
            self._stopping = asyncio.get_running_loop().create_task(self.session.stop(reason))

    async def _end(self) -> NoReturn:
        """The peer's rule ends the run; what waits here is cancelled by it."""
        self._stop(f"{self._contestant.peer} ended the run.")
        await asyncio.Event().wait()
        raise AssertionError

    async def before_call(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """The peer's rule about a call. Raises `ToolError` if it does not run."""
        match self._peer.before_call(tool, arguments):
            case "ask" if self.operator.present:
                await self.operator.think()
                if self.operator.kind != "badly":
                    if not self._case.negative:
                        raise ToolError(f"The operator rejected this call, and said: {self.operator.words}")
                    self._peer = NoPeer()  # allowed for the whole session
            case "ask" | "stop":
                await self._end()
            case "refuse":
                raise ToolError(TOLD[self._contestant.peer])

    async def _next_note(self, note: str | None) -> str | None:
        match self._peer.before_request():
            case "stop":
                await self._end()
            case "refuse":
                return TOLD[self._contestant.peer]
        return note

    def heard(self, event: events.Event, state: RunState) -> None:
        """One more event of the session."""
        self.watch.heard(event, state)
        self._peer.heard(event)

    def skips_waits(self, event: events.Event, _: RunState) -> None:
        """A wait after a fault of the case goes by on the run's clock alone, by the operator's own key."""
        if isinstance(event, events.ModelFaulted) and event.delay and self.model.raised(event.fault):
            asyncio.get_running_loop().call_soon(self._skip, event.delay)

    def _skip(self, delay: float) -> None:
        if self.session is not None and self.session.skip_wait():
            self._clock.pass_(delay)


async def run_unit(
    case: Case,
    unit: Unit,
    contestant: Contestant,
    operator: Kind,
    scratch: Path,
    journal: Path,
    real: RealModel | None = None,
) -> Row:
    """One run, after the earlier ones that its contestant has, whose cost is added to its own. `scratch` is a place for
    its workspace; its journal goes to the folder `journal`.
    """
    workspace, state_dir = fresh(case.files, scratch)
    before = 0.0
    for number in range(contestant.earlier):
        earlier = replace(unit, seed=-1 - number - contestant.earlier * unit.seed)
        played = await _play(case, earlier, contestant, operator, workspace, state_dir, journal, real)
        before += played.cost or 0.0
        renew(case.files, workspace)
    row = await _play(case, unit, contestant, operator, workspace, state_dir, journal, real)
    return row if row.cost is None else replace(row, cost=before + row.cost)


async def _play(
    case: Case,
    unit: Unit,
    contestant: Contestant,
    operator: Kind,
    workspace: Path,
    state_dir: Path,
    journal: Path,
    real: RealModel | None,
) -> Row:
    timed = real is not None and real.timed
    clock = Clock(real=timed)
    settings, model, tools = _made(case, unit, contestant, clock, workspace, state_dir, real)
    referee = _Referee(case, contestant, operator, clock, model)
    world = World(case.faults, workspace, clock, referee.before_call)
    asked: Model = referee.model
    if isinstance(model, Machine) and contestant.adviser:
        asked = AdvisedModel(asked, contestant.adviser, model, clock)
    session = await open_session(
        settings,
        referee.operator,
        asked,
        tools=world.around(tools),
        environment=None if timed else {},
        clock=clock,
        jitter=random.Random(repr(unit)).random,
        checkpoints=None if timed else MemoryCheckpoints(workspace),
    )
    referee.session = session
    session.subscribe(referee.heard)
    session.subscribe(referee.skips_waits)
    try:
        await session.submit(case.task)
        await asyncio.wait_for(session.wait(), None if real else _HANGS)
        state = session.state
    finally:
        await session.close()
    _keep(session.folder / JOURNAL_NAME, journal)
    return _row(case, unit, contestant, referee, state, clock, workspace)


def fresh(files: Mapping[str, str], scratch: Path) -> tuple[Path, Path]:
    """A workspace with these files, and a place for the session; whatever was there before is gone."""
    workspace, state_dir = scratch / "workspace", scratch / "state"
    shutil.rmtree(state_dir, ignore_errors=True)
    renew(files, workspace)
    return workspace, state_dir


def renew(files: Mapping[str, str], workspace: Path) -> None:
    """The workspace with these files and no others."""
    shutil.rmtree(workspace, ignore_errors=True)
    workspace.mkdir(parents=True)
    for name, content in files.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        if content.startswith("#!"):
            path.chmod(0o755)


def _made(
    case: Case,
    unit: Unit,
    contestant: Contestant,
    clock: Clock,
    workspace: Path,
    state_dir: Path,
    real: RealModel | None,
) -> tuple[Settings, Model, ToolRegistry]:
    if real is None:
        settings = scripted_settings(workspace, state_dir, contestant)
        return settings, Machine(case, BEHAVIOURS[unit.behaviour], unit.seed, clock), scripted_tools()
    settings = real.settings_for(workspace, state_dir, contestant)
    return settings, real.model_for(settings, case, unit), real.tools_for(settings)


def _keep(source: Path, journal: Path) -> None:
    shutil.rmtree(journal, ignore_errors=True)
    journal.mkdir(parents=True)
    shutil.copyfile(source, journal / JOURNAL_NAME)


def scripted_tools() -> ToolRegistry:
    tools = default_tools()
    wanted = ("read_file", "write_file", "edit_file", "glob", "grep", "list_dir", "ask_operator", "finish")
    return ToolRegistry([*(tool for name in wanted if (tool := tools.get(name))), RememberingBash()])


def _row(
    case: Case,
    unit: Unit,
    contestant: Contestant,
    referee: _Referee,
    state: RunState,
    clock: Clock,
    workspace: Path,
) -> Row:
    operator, watch = referee.operator, referee.watch
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
        advised=watch.advised,
        advice_tokens=watch.advice_tokens,
        tokens=state.metrics.usage.tokens,
        seconds=round(clock.passed, 3),
        until_person=None if needed is None else round(needed, 3),
        recovery_steps=steps,
        recovery_tokens=tokens,
        cost=state.metrics.usage.cost,
    )
