"""Another agent's headless command, run to its end: taken up after a fault of its model, ended if it is
stuck.

What the agent does is read in its own session, as `watch` reads it, and judged by the policy as if nobody were there;
what to do about a fault is decided by the policy as for a model of ours.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, Protocol

from tui_agent import processes
from tui_agent.agents.check import checked
from tui_agent.agents.follower import Follower
from tui_agent.agents.headless import names_a_session
from tui_agent.agents.leash import GRACE, Leashed, leashed
from tui_agent.agents.night import TaskFolder, What
from tui_agent.agents.notices import Notices
from tui_agent.agents.stall import Signs, Silence, tree
from tui_agent.agents.units import machine_goes_down
from tui_agent.agents.waiting import Clock
from tui_agent.core import events
from tui_agent.core.names import LONGEST_WAIT, unanswered
from tui_agent.core.recovery.fault_plan import plan
from tui_agent.core.recovery.model_faults import ModelFaults, when_words
from tui_agent.core.recovery.policy import RecoveryPolicy
from tui_agent.formats.importers.faults import classified
from tui_agent.quantities import clock_time, counted, dollars, whole_seconds
from tui_agent.session.goal import Goal, Rounds, files_of
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.agents.dialect import Dialect

PARTIAL, STOPPED, UNANSWERED, MODEL_FAILED, INTERRUPTED = 3, 4, 5, 6, 130
"""Exit codes of `run` for what ended it."""

GO_ON = (
    "The service of the model failed, and your last step was cut off. Go on with the task where you stopped."
)
SUB_AGENT_DIED = (
    "A sub-agent of yours was ended by a fault of the model service, and what it gave back is no result. Look at what "
    "it has done, do the rest or start it again, and then answer. It was:"
)
CUT_OFF = (
    "You were cut off: the machine or its supervisor ended. Look at what is done, and go on with the task."
)
TAKEN_UP = "Look at what is done, and go on with the task."
_BY_A_PERSON = frozenset(128 + number for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM))
"""Exit codes of an agent that somebody ended: what a person stopped is never resumed."""
_QUESTIONS = 3
"""Questions of one rule that are left open under a policy that goes on without an answer."""
_LOOK = 0.2
"""Seconds between two looks at the session."""
_COUNT = 5.0
"""Seconds between two counts of the cost."""
HELD = 30.0
"""Seconds after which an agent that met a limit and runs on is said to try again by itself."""
_READING_OUT = 0.5
"""Seconds beyond that for what it still says."""
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_TAIL = 16_000
"""Bytes of the output, from its end, that may tell of a fault."""


class Person(Protocol):
    """Who may be asked."""

    async def ask(self, subject: str, question: str) -> str | None:
        """A line; None if nobody answers. `subject`: whose question it is."""


@dataclass(frozen=True)
class Limits:
    """Bounds of a supervised run in all."""

    resumes: int
    seconds: float | None = None
    usd: float | None = None
    tokens: float | None = None
    window: float | None = None
    """Percent of the window of use from which on it ends."""
    until: float | None = None
    """The moment at which it ends, in seconds since 1970."""
    silence: float | None = None
    """Seconds of a silent stall after which it ends."""
    on_limit: Literal["ask", "wait", "stop"] = "wait"
    """Where a limit of use is reached: a person is asked once, it is waited for, or it is the end."""


@dataclass(frozen=True)
class Ceiling:
    """A bound of an agent's use. `used` is None if nobody knows it."""

    option: str
    limit: float
    used: float | None
    verb: str
    in_words: Callable[[float], str]


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
        goal: Goal | None = None,
        person: Person | None = None,
        stdin: int | IO[bytes] = processes.DEVNULL,
        clock: Clock | None = None,
        record: TaskFolder | None = None,
        notices: Notices | None = None,
    ) -> None:
        """`program`: the place of the agent's program in `command`; `follower` reads its sessions; `stdin` is what the
        first attempt reads. `record`: an attempt that was cut off is gone on with, with its count of resumes.

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
        self._goal = goal
        self._rounds = Rounds()
        self._person = person
        self._stdin = stdin
        self._faults = ModelFaults()
        self._asked: set[str] = set()
        """Rules about which the person was asked."""
        self._unanswered: Counter[str] = Counter()
        """Questions that nobody answered, by their rules, since a call succeeded."""
        self._tail = b""
        self._written = 0
        self._quiet: Silence | None = None
        self._held_since: float | None = None
        """The moment since which a limit holds the agent while it runs."""
        self._held_until = 0.0
        """The reset of the limit that was said to hold it."""
        self._clock = clock or Clock()
        self._begun = self._clock.ticks()
        self._began_at = self._clock.now()
        self._agreed = limits.on_limit == "wait"
        """It is agreed that limits are waited for."""
        self._doubts: set[str] = set()
        self._open = ""
        """The reason why its work is not done."""
        self._named: set[str] = set()
        """Sub-agents that were said to have died."""
        self._passed_on: set[str] = set()
        """The same, told to the agent."""
        self._noted = ""
        """The session that the record names."""
        self._notices = notices
        self._record = record
        self._cut_off = record.session if record is not None else ""
        """The session that was cut off with the process before; empty for none."""
        self.resumes = record.resumes if record is not None else 0
        self.interrupted = False
        """A signal ended it."""
        self.why = ""
        """The reason why it was ended, if the agent did not end by itself."""

    async def run(self) -> int:
        """The exit code: the agent's, or that of `run` for what ended it."""
        try:
            async with asyncio.timeout(self._limits.seconds) as bound:
                ending = asyncio.create_task(self._end_by_the_clock(bound))
                try:
                    return await self._attempts()
                finally:
                    ending.cancel()
        except TimeoutError:
            self.why = self.why or "its time is used up (--timeout)"
            return INTERRUPTED

    async def _end_by_the_clock(self, bound: asyncio.Timeout) -> None:
        if self._limits.until is not None:
            await self._clock.wait_until(self._limits.until)
            self.why = f"it is {self._hour(self._limits.until)} (--until)"
            bound.reschedule(asyncio.get_running_loop().time())

    def _hour(self, at: float) -> str:
        return clock_time(at, self._clock.now())

    async def _attempts(self) -> int:
        command, stdin = self._command, self._stdin
        if self._cut_off:
            if why := self._kept_from_resuming(known=False):
                self.why = f"it was cut off, and {why}"
                return PARTIAL
            self._note("resumed", text="it was cut off")
            self.resumes += 1
            command = self._headless.goes_on(self._command, self._program, self._cut_off, CUT_OFF)
        else:
            self._note("begun")
        while True:
            ended = await self._attempt(command, stdin)
            if ended.decided is not None:
                self.why = ended.why
                return ended.decided
            words = ended.advice
            if not words and ended.fault is not None:
                code = await self._waited(ended.fault)
                if code is not None:
                    return code or ended.code or MODEL_FAILED
                words = GO_ON
            elif not words:
                stopped = self._stopped(ended.code)
                self.why = "somebody stopped it" if stopped else ""
                if ended.code or stopped:
                    return ended.code
                words = await self._undone()
                if not words:
                    failed = self._follower.stand.unanswered if self._goal is None else ""
                    self.why = f"it gave no answer, its last call failed: {failed}" if failed else ""
                    return 0
                code = STOPPED if (hopeless := self._rounds.hopeless) else PARTIAL
                if why := hopeless or self._kept_from_resuming():
                    self.why = f"{self._open}, and {why}"
                    return code
            told = one_line(f"it is told: {words}", 300) if ended.advice else self._open
            self._note("resumed", text="after a fault of its model" if words is GO_ON else told)
            self.resumes += 1
            begins_anew = self._headless.forgets_empty and not self._follower.stand.replied
            if not (begins_anew and command == self._command and _is_empty(stdin)):
                command = self._headless.goes_on(self._command, self._program, self._session(), words)
            stdin = processes.DEVNULL

    def _session(self) -> str:
        """The session to go on with; empty for the newest one."""
        named = [self._headless.session_in(self._output()), self._follower.stand.session]
        for one in filter(None, named):
            if names_a_session(one):
                return one
            self._say_doubt(f"its session cannot be called {one_line(one, 80)!r}; the newest is taken")
        return ""

    def _say_doubt(self, text: str) -> None:
        """Say, once, what cannot be believed or read of the agent's records."""
        if text and text not in self._doubts:
            self._doubts.add(text)
            self.say(text)
            self._note("doubted", text=text)

    async def _undone(self) -> str:
        """What an agent is told that says that it is done; empty if it is. What a check proves, no sub-agent does."""
        if self._goal is not None:
            self._open = "its check still fails"
            return await self._unmet(self._goal)
        self._open = "a sub-agent died"
        lost = [one for one in self._follower.stand.lost if not one.told and one.lane not in self._passed_on]
        self._passed_on.update(one.lane for one in lost)
        if not lost:
            return ""
        died = "; ".join(f"{one_line(one.name, 100)} ({one_line(one.why, 200)})" for one in lost)
        return f"{SUB_AGENT_DIED} {died}"

    def _say_lost(self) -> None:
        """Name each sub-agent that died, once."""
        for one in self._follower.stand.lost:
            if one.lane not in self._named:
                self._named.add(one.lane)
                text = f"a sub-agent died: {one_line(one.name, 100)}: {one_line(one.why, 200)}"
                self.say(text)
                self._tell("a sub-agent died", text)
                self._note("lost", text=text)

    async def _unmet(self, goal: Goal) -> str:
        """Run the check, and say what the agent is told; empty if the work is done."""
        files = await asyncio.to_thread(files_of, self._workspace, self._began_at)
        found = await checked(goal, self._workspace, self._environment)
        if found.passed:
            self.say("the check passes")
            self._note("checked", code=0, text="passed")
            return ""
        self.say(f"the check fails: {found.in_words(goal)}")
        self._note("checked", code=found.code or 1, text=found.in_words(goal))
        left = await asyncio.to_thread(files_of, self._workspace, self._began_at)
        self._rounds = self._rounds.failed(found.failures, files, left)
        return found.told(goal)

    def _note(self, what: What, **fields: Any) -> None:
        """Keep what happened for the morning."""
        if self._record is not None:
            try:
                self._record.add(what, **fields)
            except OSError as error:
                self._record = None
                self.say(f"nothing more of it is kept for the morning: {error.strerror or error}")

    def _tell(self, what: str, text: str) -> None:
        """Tell a person who is away."""
        if self._notices is not None:
            self._notices.put(f"{self._subject}: {what}", text)

    @property
    def _subject(self) -> str:
        own = self._workspace.name == "worktree"
        return f"{self._dialect.title} in {(self._workspace.parent if own else self._workspace).name}"

    def over(self, code: int) -> None:
        """Keep the end, and tell of it. What the machine's end stops stays open."""
        if code in _BY_A_PERSON and machine_goes_down():
            return
        self._tell("ended", f"exit code {code}" + (f", {self.why}" if self.why else ""))
        stand = self._follower.stand
        self._note(
            "ended",
            code=code,
            text=self.why,
            session=stand.session,
            spent=stand.spent if stand.path else None,
            tokens=stand.tokens if stand.path else None,
            calls=stand.calls,
            failed=stand.failed,
        )

    def _kept_from_resuming(self, *, known: bool = True) -> str:
        """The limit that keeps the agent from being resumed; empty if none does. `known`: its session has been read."""
        if self.resumes >= self._limits.resumes:
            return "it may not be resumed again (--max-resumes)"
        for one in self._ceilings() if known else ():
            if one.used is None:
                return f"what it has {one.verb} is not known, and {one.option} bounds it"
        return self._ceiling_reached() if known else ""

    def _ceilings(self) -> Iterator[Ceiling]:
        """The bounds of its use that were set."""
        limits, stand = self._limits, self._follower.stand
        if limits.usd is not None:
            yield Ceiling("--max-cost", limits.usd, stand.spent, "spent", dollars)
        if limits.tokens is not None:
            yield Ceiling(
                "--max-tokens", limits.tokens, stand.tokens, "used", lambda used: f"{used:,.0f} tokens"
            )
        if limits.window is not None:
            yield Ceiling(
                "--max-window",
                limits.window,
                stand.window,
                "used",
                lambda used: f"{used:.0f} % of its window",
            )

    def _ceiling_reached(self) -> str:
        for one in self._ceilings():
            if one.used is not None and one.used >= one.limit:
                return f"it has {one.verb} {one.in_words(one.used)} ({one.option})"
        return ""

    async def _waited(self, fault: events.Fault) -> int | None:
        """Wait before the agent is taken up again; the exit code if it is not, 0 for that of the fault."""
        decided = plan(
            self._policy,
            self._faults,
            fault,
            operator_present=False,
            can_shrink=False,
            jitter=random.SystemRandom().random(),
            now=self._clock.now(),
            on_limit="wait",
            wait_at_most=LONGEST_WAIT if self._limits.until is None else math.inf,
        )
        kept = self._kept_from_resuming()
        if decided.action not in {"retry", "wait"} or kept:
            self.why = f"{fault.kind.in_words}: {one_line(fault.message, 200)}" + (
                f"; {kept}" if kept else ""
            )
            return 0
        self._faults = self._faults.faulted(
            events.ModelFaulted(
                fault=fault, iteration=1, attempt=1, action=decided.action, delay=decided.delay
            )
        )
        if decided.until is None:
            self.say(f"{fault.kind.in_words}: it goes on in {whole_seconds(decided.delay)}")
            self._note("waits", text=fault.kind.in_words, until=self._clock.now() + decided.delay)
            await self._clock.sleep(decided.delay)
            return None
        return await self._limit_over(when_words(fault, self._clock.now()), decided.until)

    async def _limit_over(self, limit: str, at: float) -> int | None:
        """Wait until a limit of use lets the agent through; the exit code if that is not wanted."""
        if self._record is not None:
            with suppress(OSError):
                self._record.limited(self._dialect.name, at)
        hour = self._hour(at)
        self.why = limit
        if self._limits.until is not None and at >= self._limits.until:
            self.why += f"; it could go on at {hour}, after --until {self._hour(self._limits.until)}"
            return MODEL_FAILED
        if self._limits.on_limit == "stop":
            self.why += " (--on-limit stop)"
            return MODEL_FAILED
        if not (self._agreed or (self._record is not None and self._record.agreed)):
            if self._person is None:
                self.why += "; nobody is here to ask (--on-limit ask)"
                return UNANSWERED
            said = await self._person.ask(
                self._subject,
                f"{limit}. It can go on at {hour}, and after each further limit, within the "
                f"limits that you set ({counted(self._limits.resumes - self.resumes, 'resume')} left).",
            )
            if said is None or said.strip() not in {"", "g", "go on"}:
                self.why += "; nobody answered" if said is None else "; you stopped it"
                return UNANSWERED if said is None else STOPPED
            self._agree()
        self.why = ""
        self.say(f"{limit}: it waits, and goes on at {hour}")
        self._tell("a limit", f"{limit}: it waits, and goes on at {hour}")
        self._note("waits", text=limit, until=at)
        await self._clock.wait_until(at)
        return None

    def _agree(self) -> None:
        """Wait for all further limits, those of the night's other tasks too."""
        self._agreed = True
        if self._record is not None:
            with suppress(OSError):
                self._record.agree()

    def say(self, text: str) -> None:
        """A line for the person, beside the agent's output."""
        sys.stderr.write(f"agent-tui: {self._dialect.title}: {one_line(text, 400)}\n")
        sys.stderr.flush()

    # --- one attempt ----------------------------------------------------------------------------------------------

    async def _attempt(self, command: Sequence[str], stdin: int | IO[bytes]) -> Ended:
        goes_on = self.resumes > 0 or self._headless.chooses_session(command[self._program + 1 :])
        await self._follower.begin(goes_on=goes_on)
        self._tail = b""
        environment = {**self._environment, "PWD": str(self._workspace)}
        async with leashed(command, cwd=self._workspace, env=environment, stdin=stdin) as running:
            process = running.child.process
            reading = [
                asyncio.create_task(self._pass_on(process.stdout, sys.stdout.buffer)),
                asyncio.create_task(self._pass_on(process.stderr, sys.stderr.buffer)),
            ]
            try:
                ended = await self._watch(running)
            finally:
                running.let_go()
                await processes.uncancelled(_read_out(reading))
        await self._follower.end()
        self._say_unfollowed()
        self._say_lost()
        self._say_doubt(self._follower.stand.loss)
        if self._follower.stand.replied:
            self._faults = self._faults.replied()
        if ended.decided is None and not ended.advice and ended.fault is None:
            return Ended(ended.code, fault=self._fault(ended.code))
        return ended

    async def _pass_on(self, stream: asyncio.StreamReader | None, to: IO[bytes]) -> None:
        while stream is not None and (piece := await stream.read(1 << 16)):
            self._tail = (self._tail + piece)[-_TAIL:]
            self._written += len(piece)
            with suppress(BrokenPipeError):  # nobody reads it any more, and the agent goes on
                to.write(piece)
                to.flush()

    async def _watch(self, running: Leashed) -> Ended:
        """Until the agent ends, or has to be ended."""
        child = running.child
        count_at = time.monotonic() + _COUNT
        self._quiet = None
        looking = asyncio.create_task(self._follower.look())
        while True:
            gone = child.code is not None
            if looking.done():
                for told in looking.result():
                    ended = None if gone else await self._judged(told, running)
                    if ended is not None:
                        return ended
                if not gone and (ended := self._holds()) is not None:
                    return ended
                self._say_unfollowed()
                self._say_lost()
                session = self._follower.stand.session
                if session and session != self._noted:
                    self._noted = session
                    self._note("session", session=session, path=self._follower.stand.path)
                looking = asyncio.create_task(self._follower.look())
            if (code := running.code) is not None:
                return Ended(code)
            if gone:
                return Ended(128 + signal.SIGKILL)
            if time.monotonic() > count_at:
                if (ended := await self._used_up(running)) is not None:
                    return ended
                count_at = time.monotonic() + _COUNT
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK):
                    await child.process.wait()

    def _holds(self) -> Ended | None:
        """Say, once, that a limit holds an agent that tries again by itself; the end if limits are not waited for."""
        fault, now = self._follower.stand.fault, self._clock.now()
        at = fault.resets_at if fault is not None and fault.kind is events.FaultKind.USAGE_LIMIT else None
        if fault is None or at is None or at - now <= self._policy.retry_after_cap:
            self._held_since = None
            return None
        self._held_since = self._clock.ticks() if self._held_since is None else self._held_since
        if self._clock.ticks() - self._held_since < HELD:
            return None
        if self._limits.on_limit == "stop":
            return Ended(0, fault=fault)
        if abs(at - self._held_until) > HELD:
            self._held_until = at
            text = f"{when_words(fault, now)}: it tries again by itself"
            self.say(text)
            self._tell("a limit", text)
            self._note("held", text=text, until=at)
        return None

    async def _used_up(self, running: Leashed) -> Ended | None:
        """The end that a limit brings to the agent: that of its cost, or of its silence."""
        if reached := self._ceiling_reached():
            return Ended(0, reached, PARTIAL)
        signs = await self._signs(running.leader)
        if signs is None:
            return None
        now, longest = self._clock.ticks(), self._limits.silence
        self._quiet = Silence(signs, now) if self._quiet is None else self._quiet.after(signs, now)
        for_long = whole_seconds(now - self._quiet.since)
        if longest is not None and now - self._quiet.since >= longest:
            return Ended(0, f"it was silent for {for_long} (--max-silence)", STOPPED)
        if self._quiet.to_tell(now):
            self._quiet = self._quiet.has_told()
            text = f"silent for {for_long}: no output, no processor time, no new record"
            self.say(text)
            self._tell("a stall", text)
            self._note("stalled", text=text)
        return None

    async def _signs(self, leader: int) -> Signs | None:
        """Signs of work; None if the system does not tell of processes."""
        if (found := await asyncio.to_thread(tree, leader)) is None:
            return None
        stand = self._follower.stand
        return Signs(self._written, (stand.path, stand.size), *found)

    def _say_unfollowed(self) -> None:
        if self._follower.why and not self._unfollowed:
            self._unfollowed = True
            self.say(f"nothing of it is judged any more: {self._follower.why}")

    async def _judged(self, verdict: events.VerdictReached | None, running: Leashed) -> Ended | None:
        """The end that a verdict brings to the agent; None: it goes on. Without one a call has succeeded."""
        if verdict is None:
            self._unanswered.clear()
            return None
        # Nobody can give another agent a new window in the middle of its run.
        stops = verdict.level.rank >= events.Level.RESTART.rank
        if not stops and verdict.level is not events.Level.ESCALATE:
            return None
        why = f"{verdict.reason} ({verdict.rule})"
        if self._person is not None and verdict.rule not in self._asked:
            self._asked.add(verdict.rule)
            return await self._answered(self._person, why, running)
        if stops:
            return Ended(0, f"it is stuck: {why}", STOPPED)
        self._unanswered[verdict.rule] += 1
        allowed = _QUESTIONS if unanswered(self._policy.name, None) == "continue" else 0
        if self._unanswered[verdict.rule] > allowed:
            return Ended(0, f"nobody is here to answer: {why}", UNANSWERED)
        return None

    async def _answered(self, person: Person, why: str, running: Leashed) -> Ended | None:
        """Ask while the agent rests."""
        leader = running.leader
        _signal(leader, signal.SIGSTOP)
        try:
            said = await person.ask(self._subject, one_line(why, 400))
        finally:
            _signal(leader, signal.SIGCONT)
            self._quiet = None
        match said if said is None else said.strip():
            case None:
                return Ended(0, f"nobody answered: {why}", UNANSWERED)
            case "" | "g" | "go on":
                return None
            case "s" | "stop":
                return Ended(0, f"you stopped it: {why}", STOPPED)
            case words:
                return Ended(0, advice=words)

    def _stopped(self, code: int) -> bool:
        return code in _BY_A_PERSON or self._follower.stand.stopped

    def _fault(self, code: int) -> events.Fault | None:
        """The fault of the model with which the agent ended; None: it ended for another reason."""
        if self._stopped(code):
            return None
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
        parts.append(whole_seconds(self._clock.ticks() - self._begun))
        stand = self._follower.stand
        if stand.path:
            failed = f", {stand.failed} failed" if stand.failed else ""
            parts.append(counted(stand.calls, "call") + failed)
            parts.append(f"session {one_line(stand.path, 400)}")
        return "; ".join(parts)


def words_after(code: int | None) -> str:
    """The words with which a person goes on with a task that ended with this exit code; None: it has no end."""
    return CUT_OFF if code is None else GO_ON if code == MODEL_FAILED else TAKEN_UP


async def _read_out(reading: Sequence[asyncio.Task[None]]) -> None:
    """Read what the agent still says until it is gone."""
    await asyncio.wait(reading, timeout=GRACE + _READING_OUT)
    for task in reading:
        task.cancel()
    await asyncio.gather(*reading, return_exceptions=True)


def _is_empty(stdin: int | IO[bytes]) -> bool:
    """Nothing was read from it that another attempt would miss."""
    return isinstance(stdin, int) or os.path.samestat(os.fstat(stdin.fileno()), Path(os.devnull).stat())


def _signal(leader: int, number: signal.Signals) -> None:
    if leader:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, number)
