"""Another agent's headless command, run to its end: taken up after a fault of its model, ended if it is
stuck.

What the agent does is read in its own session, as `watch` reads it, and judged by the policy as if nobody were there;
what to do about a fault is decided by the policy as for a model of ours.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from tui_agent import processes
from tui_agent.agents.follower import Follower
from tui_agent.core import events
from tui_agent.core.names import unanswered
from tui_agent.core.recovery.fault_plan import plan
from tui_agent.core.recovery.model_faults import ModelFaults
from tui_agent.core.recovery.policy import RecoveryPolicy
from tui_agent.formats.importers.faults import classified
from tui_agent.quantities import counted, dollars, whole_seconds
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.agents.dialect import Dialect

PARTIAL, STOPPED, UNANSWERED, MODEL_FAILED, INTERRUPTED = 3, 4, 5, 6, 130
"""Exit codes of `run` for what ended it."""

GO_ON = (
    "The service of the model failed, and your last step was cut off. Go on with the task where you stopped."
)
_QUESTIONS = 3
"""Questions of one rule that are left open under a policy that goes on without an answer."""
_LOOK = 0.2
"""Seconds between two looks at the session."""
_COUNT = 5.0
"""Seconds between two counts of the cost."""
_GRACE = 1.0
"""Seconds for the agent to end by itself: with what follows, all is over within two of the limit."""
_READING_OUT = 0.5
"""Seconds beyond that for what it still says."""
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_TAIL = 16_000
"""Bytes of the output, from its end, that may tell of a fault."""


class Person(Protocol):
    """Who may be asked."""

    async def ask(self, question: str) -> str | None:
        """A line; None if nobody answers."""


@dataclass(frozen=True)
class Limits:
    """Bounds of a supervised run in all."""

    resumes: int
    seconds: float | None = None
    usd: float | None = None


@dataclass(frozen=True)
class Ended:
    """The end of one attempt. `decided` is the exit code if it was not the agent that ended it."""

    code: int
    why: str = ""
    decided: int | None = None
    advice: str = ""
    """The person's words to the agent."""
    fault: events.Fault | None = None


class Supervisor:
    """One command of an agent, from its first start to its end."""

    def __init__(
        self,
        dialect: Dialect,
        command: Sequence[str],
        program: int,
        *,
        workspace: Path,
        policy: RecoveryPolicy,
        limits: Limits,
        follower: Follower,
        environment: dict[str, str],
        person: Person | None = None,
        stdin: int | IO[bytes] = processes.DEVNULL,
    ) -> None:
        """`program`: the place of the agent's program in `command`; `follower` reads its sessions; `stdin` is what the
        first attempt reads.

        Raises `ValueError` for an agent of which is not known how it goes on.
        """
        if dialect.headless is None:
            raise ValueError(f"{dialect.title} is not supervised")
        self._dialect = dialect
        self._headless = dialect.headless
        self._command = list(command)
        self._program = program
        self._workspace = workspace
        self._follower = follower
        self._unfollowed = False
        """It was said that nothing is judged any more."""
        self._policy = policy.model_copy(update={"model_faults": "retry", "model_tries": limits.resumes + 1})
        self._limits = limits
        self._environment = environment
        self._person = person
        self._stdin = stdin
        self._faults = ModelFaults()
        self._asked: set[str] = set()
        """Rules about which the person was asked."""
        self._unanswered: Counter[str] = Counter()
        """Questions that nobody answered, by their rules, since a call succeeded."""
        self._tail = b""
        self._begun = time.monotonic()
        self.resumes = 0
        self.why = ""
        """The reason why it was ended, if the agent did not end by itself."""

    async def run(self) -> int:
        """The exit code: the agent's, or that of `run` for what ended it."""
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await self._attempts()
        except TimeoutError:
            self.why = "its time is used up (--timeout)"
            return INTERRUPTED

    async def _attempts(self) -> int:
        command, stdin = self._command, self._stdin
        while True:
            ended = await self._attempt(command, stdin)
            if ended.decided is not None:
                self.why = ended.why
                return ended.decided
            if not ended.advice:
                if ended.fault is None:
                    return ended.code
                if not await self._waited(ended.fault):
                    return ended.code or MODEL_FAILED
            self.resumes += 1
            session = self._headless.session_in(self._output()) or self._follower.stand.session
            command = self._headless.goes_on(self._command, self._program, session, ended.advice or GO_ON)
            stdin = processes.DEVNULL

    async def _waited(self, fault: events.Fault) -> bool:
        """Wait before the agent is taken up again; False if it is not."""
        decided = plan(
            self._policy,
            self._faults,
            fault,
            operator_present=False,
            can_shrink=False,
            jitter=random.SystemRandom().random(),
            now=time.time(),
            on_limit="wait",
        )
        if decided.action not in {"retry", "wait"} or self.resumes >= self._limits.resumes:
            self.why = f"{fault.kind.in_words}: {one_line(fault.message, 200)}"
            return False
        if self._limits.usd is not None and self._follower.stand.spent is None:
            self.why = "what it has spent is not known, and --max-cost bounds it"
            return False
        self._faults = self._faults.faulted(
            events.ModelFaulted(
                fault=fault, iteration=1, attempt=1, action=decided.action, delay=decided.delay
            )
        )
        self.say(f"{fault.kind.in_words}: it goes on in {whole_seconds(decided.delay)}")
        await asyncio.sleep(decided.delay)
        return True

    def say(self, text: str) -> None:
        """A line for the person, beside the agent's output."""
        sys.stderr.write(f"agent-tui: {self._dialect.title}: {one_line(text, 400)}\n")
        sys.stderr.flush()

    # --- one attempt ----------------------------------------------------------------------------------------------

    async def _attempt(self, command: Sequence[str], stdin: int | IO[bytes]) -> Ended:
        goes_on = self.resumes > 0 or self._headless.chooses_session(command[self._program + 1 :])
        await self._follower.begin(goes_on=goes_on)
        self._tail = b""
        async with self._started(command, stdin) as (child, status, leash):
            reading = [
                asyncio.create_task(self._pass_on(child.process.stdout, sys.stdout.buffer)),
                asyncio.create_task(self._pass_on(child.process.stderr, sys.stderr.buffer)),
            ]
            try:
                ended = await self._watch(child, status)
            finally:
                os.close(leash)
                await processes.uncancelled(_read_out(reading))
        await self._follower.end()
        self._say_unfollowed()
        if self._follower.stand.replied:
            self._faults = self._faults.replied()
        if ended.decided is None and not ended.advice:
            return Ended(ended.code, fault=self._fault(ended.code))
        return ended

    @asynccontextmanager
    async def _started(
        self, command: Sequence[str], stdin: int | IO[bytes]
    ) -> AsyncIterator[tuple[processes.Child, int, int]]:
        """The agent, the pipe that tells of its end, and its leash: when that is closed, here or because we died, it
        ends with all that it started.
        """
        environment = {**self._environment, "PWD": str(self._workspace)}
        (leash_end, leash), (status, status_end) = os.pipe(), os.pipe()
        os.set_blocking(status, False)
        try:
            child = await processes.start(
                [*processes.supervised(_GRACE, status_end, leash=leash_end), *command],
                cwd=self._workspace,
                env=environment,
                stdin=stdin,
                pass_fds=(leash_end, status_end),
            )
        finally:
            os.close(leash_end)
            os.close(status_end)
        try:
            yield child, status, leash
        finally:
            await child.end()
            os.close(status)

    async def _pass_on(self, stream: asyncio.StreamReader | None, to: IO[bytes]) -> None:
        while stream is not None and (piece := await stream.read(1 << 16)):
            self._tail = (self._tail + piece)[-_TAIL:]
            with suppress(BrokenPipeError):  # nobody reads it any more, and the agent goes on
                to.write(piece)
                to.flush()

    async def _watch(self, child: processes.Child, status: int) -> Ended:
        """Until the agent ends, or has to be ended."""
        lines: list[str] = []
        count_at = time.monotonic() + _COUNT
        looking = asyncio.create_task(self._follower.look())
        while True:
            gone = child.code is not None
            with suppress(BlockingIOError):
                lines += os.read(status, 4_096).decode("ascii", "replace").splitlines()
            if looking.done():
                for told in looking.result():
                    ended = None if gone else await self._judged(told, lines)
                    if ended is not None:
                        return ended
                self._say_unfollowed()
                looking = asyncio.create_task(self._follower.look())
            code = next((int(line.split()[1]) for line in lines if line.startswith("exit ")), None)
            if code is not None:
                return Ended(code)
            if gone:
                return Ended(128 + signal.SIGKILL)
            if self._limits.usd is not None and time.monotonic() > count_at:
                spent = self._follower.stand.spent
                if spent is not None and spent >= self._limits.usd:
                    return Ended(0, f"it has spent {dollars(spent)} (--max-cost)", PARTIAL)
                count_at = time.monotonic() + _COUNT
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK):
                    await child.process.wait()

    def _say_unfollowed(self) -> None:
        if self._follower.why and not self._unfollowed:
            self._unfollowed = True
            self.say(f"nothing of it is judged any more: {self._follower.why}")

    async def _judged(self, verdict: events.VerdictReached | None, lines: Sequence[str]) -> Ended | None:
        """The end that a verdict brings to the agent; None: it goes on. Without one a call has succeeded."""
        if verdict is None:
            self._unanswered.clear()
            return None
        stops = verdict.level in {events.Level.STOP, events.Level.DEGRADE}
        if not stops and verdict.level is not events.Level.ESCALATE:
            return None
        why = f"{verdict.reason} ({verdict.rule})"
        if self._person is not None and verdict.rule not in self._asked:
            self._asked.add(verdict.rule)
            return await self._answered(self._person, why, lines)
        if stops:
            return Ended(0, f"it is stuck: {why}", STOPPED)
        self._unanswered[verdict.rule] += 1
        allowed = _QUESTIONS if unanswered(self._policy.name, None) == "continue" else 0
        if self._unanswered[verdict.rule] > allowed:
            return Ended(0, f"nobody is here to answer: {why}", UNANSWERED)
        return None

    async def _answered(self, person: Person, why: str, lines: Sequence[str]) -> Ended | None:
        """Ask while the agent rests."""
        leader = next((int(line.split()[1]) for line in lines if line.startswith("pid ")), 0)
        _signal(leader, signal.SIGSTOP)
        try:
            said = await person.ask(f"{self._dialect.title}: {one_line(why, 400)}")
        finally:
            _signal(leader, signal.SIGCONT)
        match said if said is None else said.strip():
            case None:
                return Ended(0, f"nobody answered: {why}", UNANSWERED)
            case "" | "g" | "go on":
                return None
            case "s" | "stop":
                return Ended(0, f"you stopped it: {why}", STOPPED)
            case words:
                return Ended(0, advice=words)

    def _fault(self, code: int) -> events.Fault | None:
        """The fault of the model with which the agent ended; None: it ended for another reason."""
        fault = self._follower.stand.fault
        if fault is not None or (code == 0 and not self._headless.hides_faults):
            return fault
        said = self._headless.said_of_fault(self._output())
        return classified(said) if said else None

    def _output(self) -> str:
        """The end of what the agent wrote."""
        return _STYLE.sub("", self._tail.decode("utf-8", "replace"))

    def summary(self, code: int) -> str:
        """The run in one line."""
        parts = [f"exit code {code}" + (f", {self.why}" if self.why else "")]
        if self.resumes:
            parts.append(f"resumed {counted(self.resumes, 'time')}")
        parts.append(whole_seconds(time.monotonic() - self._begun))
        stand = self._follower.stand
        if stand.path:
            failed = f", {stand.failed} failed" if stand.failed else ""
            parts.append(counted(stand.calls, "call") + failed)
            parts.append(f"session {one_line(stand.path, 400)}")
        return "; ".join(parts)


async def _read_out(reading: Sequence[asyncio.Task[None]]) -> None:
    """Read what the agent still says until it is gone."""
    await asyncio.wait(reading, timeout=_GRACE + _READING_OUT)
    for task in reading:
        task.cancel()
    await asyncio.gather(*reading, return_exceptions=True)


def _signal(leader: int, number: signal.Signals) -> None:
    if leader:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, number)
