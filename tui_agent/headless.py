"""A run without a screen: the same session, an operator who is not there, and an outcome for scripts.

What the run prints goes through a `Presenter` (`headless_output`); how it ended becomes an exit code. Signals,
a timeout and a reader who leaves end the run as interrupted, with everything recorded.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from tui_agent.agents.notices import tell
from tui_agent.config.settings import Settings
from tui_agent.core.events import Approval, ApprovalAsked, EscalationRaised, Outcome, ServerAsked
from tui_agent.core.names import OnEscalation, unanswered
from tui_agent.core.result import RunResult, result_of
from tui_agent.headless_output import Outlet, presenter
from tui_agent.models.protocol import Model
from tui_agent.runtime.operator import ApprovalReply, EscalationReply, GateReply, RequestOutline, ServerReply
from tui_agent.session.goal import Goal
from tui_agent.session.opening import open_session
from tui_agent.session.other_agent import FindAgent, own_loop
from tui_agent.session.session import Session
from tui_agent.store.errors import SessionError
from tui_agent.store.retention import put_away

SERVERS_PATIENCE = 30.0
"""Seconds that a run's first model call waits for MCP servers: nobody is there to see that they came late."""
EXIT_CODES = {
    Outcome.ANSWERED: 0,
    Outcome.ERROR: 1,
    Outcome.PARTIAL: 3,
    Outcome.STOPPED: 4,
    Outcome.ESCALATED: 5,
    Outcome.MODEL_FAILED: 6,
    Outcome.INTERRUPTED: 130,
}
"""Exit codes of `run`, on which scripts rely; 2 is for what is found wrong before a run starts."""


@dataclass
class HeadlessOperator:
    """Nobody is here: calls that need an approval are denied, and `--on-escalation` answers questions."""

    on_escalation: OnEscalation = "continue"
    approve_mode: Approval = Approval.ASK

    @property
    def present(self) -> bool:
        return False

    async def approve(self, asked: ApprovalAsked) -> ApprovalReply:
        """Deny, and tell the model why and what it can still do."""
        still = {
            Approval.PLAN: "Reading, listing and searching need no approval",
            Approval.ASK: "Reading, listing and searching need no approval",
            Approval.WRITES: "Reading, searching and editing files need no approval",
            Approval.ALL: "A command that names its programs in plain words needs no approval",
        }[self.approve_mode]
        mode = f"--approve {self.approve_mode}"
        if self.approve_mode is Approval.ALL:
            mode += f", but {asked.why}"
        reason = (
            f"nobody is here who could approve {asked.tool} ({mode}). {still}; "
            "go on with those, and say in your answer what could not be done"
        )
        return ApprovalReply("deny", reason, by="policy")

    async def answer(self, raised: EscalationRaised) -> EscalationReply:
        """The answer of `--on-escalation`, to every question."""
        return EscalationReply(self.on_escalation, by="policy")

    async def consult(self, asked: ServerAsked) -> ServerReply:
        """No server of a checkout is started, and no server's question answered, by nobody."""
        return ServerReply("cancel" if asked.purpose == "trust" else "decline", by="policy")

    async def gate(self, outline: RequestOutline) -> GateReply:
        """Nobody looks at the next request: it goes out at once, with its note as it is."""
        return GateReply(outline.note)


async def run_headless(
    settings: Settings,
    task: str,
    *,
    model: Model,
    resume: Path | None = None,
    goal: Goal | None = None,
    agent: FindAgent = own_loop,
) -> int:
    """Run `task`, print what `settings.output` asks for, and return the exit code.

    `resume` is the folder of a session to go on with: a run that its process left open goes on, with all its
    counters, and `task` is the operator's next message to it. `goal`: an answer is checked by it, and sent back while
    the check fails. `model` is closed with it; `agent` finds another agent that takes the steps. Raises `SessionError`
    if no session can be opened.
    """
    outlet = Outlet(sys.stdout)
    shown = presenter(settings.output, outlet, sys.stderr)
    operator = HeadlessOperator(approve_mode=settings.approve)
    session = await open_session(
        settings.replaced(step=False), operator, model, resume, listener=shown.event, agent=agent
    )
    failure = ""
    try:
        begun = asyncio.Event()
        with _interruptions(session, begun, settings.timeout, outlet):
            policy = session.state.session.policy or settings.policy
            operator.on_escalation = unanswered(policy, settings.on_escalation)
            session.mcp.connect(SERVERS_PATIENCE)
            if goal is not None:
                session.set_goal(goal)
            session.go_on()
            await session.submit(task)
            begun.set()
            await session.wait()
    finally:
        failure = await _closed(session)
        await put_away(settings.state_dir, session.id, settings.retention_days, time.time())
    result = outcome_of(session)
    failure = failure or session.runs.unprepared
    if failure:
        result = result.failed(failure)
    shown.result(result)
    where = Path(session.state.session.workspace).name
    await tell(
        settings, f"agent-tui run in {where}: ended", f"{result.outcome}: {result.reason or result.answer}"
    )
    return _exit_code(result, outlet)


def outcome_of(session: Session) -> RunResult:
    """The result of the newest run, or that of a check that still fails."""
    result = result_of(session.state)
    if (unmet := session.goal_keeper.unmet) is None:
        return result
    return replace(result, outcome=unmet.outcome, reason=unmet.why, rule=None)


async def _closed(session: Session) -> str:
    """Close the session; what could not be saved, in words, or nothing."""
    try:
        await session.close()
    except SessionError as error:
        return str(error)
    return ""


def _exit_code(result: RunResult, outlet: Outlet) -> int:
    if outlet.fault and not outlet.reader_left:
        sys.stderr.write(
            f"agent-tui: standard output could not be written: {outlet.fault}.\n"
            f"The run is saved as session {result.session_id}; make room, then see `agent-tui replay`.\n"
        )
        return EXIT_CODES[Outcome.ERROR]
    return EXIT_CODES[result.outcome]


@contextmanager
def _interruptions(
    session: Session, begun: asyncio.Event, timeout: float | None, outlet: Outlet
) -> Iterator[None]:
    """While inside, signals, the timeout and a reader who leaves stop the run, once it has `begun`; a second signal
    is final.
    """
    loop = asyncio.get_running_loop()
    stopping: list[asyncio.Task[None]] = []

    async def stop_run(reason: str) -> None:
        await begun.wait()
        await session.stop(reason)

    def stop(reason: str) -> None:
        if not stopping:
            stopping.append(loop.create_task(stop_run(reason), name="stop"))

    def on_signal(number: int, _: FrameType | None) -> None:
        if stopping:
            raise KeyboardInterrupt
        name = signal.Signals(number).name
        loop.call_soon_threadsafe(stop, f"The run was interrupted by {name}.")

    outlet.on_fault = lambda: stop(f"Standard output could not be written: {outlet.fault}.")
    timer = None
    if timeout is not None:
        timer = loop.call_later(timeout, stop, f"The run took longer than --timeout {timeout:g} s.")
    restore = _handle_signals(on_signal)
    try:
        yield
    finally:
        restore()
        outlet.on_fault = lambda: None
        if timer is not None:
            timer.cancel()
        if not begun.is_set():
            for task in stopping:
                task.cancel()


def _handle_signals(handler: Callable[[int, FrameType | None], None]) -> Callable[[], None]:
    """Install `handler` for what asks a process to end; returns what puts the earlier ones back."""
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    earlier = {number: signal.signal(number, handler) for number in _ending_signals()}

    def restore() -> None:
        for number, before in earlier.items():
            signal.signal(number, before)

    return restore


def _ending_signals() -> tuple[signal.Signals, ...]:
    """SIGHUP only if the process is not to outlive its terminal (`nohup`)."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return (signal.SIGINT, signal.SIGTERM)
    return (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
