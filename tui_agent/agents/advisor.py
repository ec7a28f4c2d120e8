"""Our engine's judgement on another agent's conversation while it goes on: a hook event in, an answer out.

Each lane (a main line, or one sub-agent) is a session of ours, whose events are those that an import of its steps makes
and whose verdicts are those that `analyze` would give. Nothing is judged here: the note is the one that was prepared,
a refusal the engine's own. Blocking; the clock is the caller's.
"""

from __future__ import annotations

import os
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tui_agent.agents.answers import mark_of, take
from tui_agent.agents.dialect import Heard, Moment
from tui_agent.core import events
from tui_agent.core.decision.decide import NO_CALL
from tui_agent.core.evolve import evolve
from tui_agent.core.framed import cleaned, framed, sealed
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.changes import unexplained
from tui_agent.core.recovery.note import tagged
from tui_agent.formats.importers.faults import classified
from tui_agent.formats.importers.judgement import Judge
from tui_agent.formats.importers.normalise import Builder
from tui_agent.formats.importers.transcript import Call, Faulted, Remarked, Result, Said, Transcript, Turn
from tui_agent.store.journal import JOURNAL_NAME, read_journal
from tui_agent.store.lines import encode
from tui_agent.store.lock import SessionLock
from tui_agent.store.private import make_private
from tui_agent.store.provenance import mark_foreign
from tui_agent.store.redaction import Redactor
from tui_agent.tools.failure_hints import hint_for
from tui_agent.tools.walk import walk
from tui_agent.tools.workspace import Workspace

if TYPE_CHECKING:
    from tui_agent.agents.dialect import Dialect
    from tui_agent.core.recovery.policy import RecoveryPolicy

Advise = Literal["off", "note", "refuse"]

LONGEST = 100_000
"""Characters of one result, message or argument that are kept: a hook has to answer at once."""
_OF_SHAPES = Redactor({})
"""Between two events, when no secret is known."""
_RECENT = 100
_LOOK = 0.1
"""Seconds for a look at the workspace before a call is refused."""


@dataclass(frozen=True)
class Advice:
    """Words for the agent; "" for none."""

    note: str = ""
    refuse: str = ""
    ask: str = ""
    go_on: str = ""


class AdvisedConversation:
    """One conversation as a session of ours."""

    def __init__(
        self,
        folder: Path,
        heard: Heard,
        dialect: Dialect,
        policy: str | RecoveryPolicy,
        redactor: Redactor,
        at: float,
    ) -> None:
        """The session in `folder`, which goes on if it has events. `redactor`: for the words of the
        beginning. `at`: seconds since the epoch.

        Raises `SessionError` and `OSError` if its journal cannot be had.
        """
        self.folder = folder
        self._dialect = dialect
        self._redactor = redactor
        self._transcript = Transcript(
            title=f"{dialect.title}: sub-agent {heard.lane}" if heard.lane else "",
            workspace=heard.workspace,
            operator_present=heard.attended and dialect.answers.ask is not None,
        )
        self._judge = Judge(policy, self._report)
        self._builder = Builder(
            self._transcript, lambda event: self._judge.take(self._judge.keyed(event), None), at=at
        )
        self._seq = 0
        """Of the newest event in the journal."""
        self._unwritten = bytearray()
        self._note = ""
        self._rejected = ""
        self._recent: deque[str] = deque(maxlen=_RECENT)
        """Ids of calls, and prompts, that were recorded last."""
        self._told = ""
        """With what the model was told to go on."""
        self._failed: dict[str, tuple[Call, Result]] = {}
        """Calls of the open reply that are known to have failed, by id."""
        self._begun: dict[str, Call] = {}
        """Calls that may have run since the last reply was over, by id."""
        self._in_batches: bool | None = None
        """The agent says when all calls of a reply have ended; None: not heard yet."""
        self._held = ""
        """A note that waits for the next event whose answer the model reads."""
        self._caught: set[str] = set()
        """Calls that were recorded before their reply was over."""
        self._refused: dict[str, Result] = {}
        """Calls that were refused here, by id, until the agent tells their end."""
        self._asked: set[str] = set()
        """Keys of calls about which the person was asked since they failed last."""
        self._failed_at: dict[str, float] = {}
        self._folder = folder
        self._lock = SessionLock.acquire(folder)
        try:
            self._open(folder)
            self._redactor = _OF_SHAPES
        except BaseException:
            self._lock.release()
            raise

    def _open(self, folder: Path) -> None:
        journal = folder / JOURNAL_NAME
        known = read_journal(journal) if _has_events(journal) else None
        self._file = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.ftruncate(self._file, 0 if known is None else known.end.size)
        if known is None or not known.events:
            self._builder.begin(folder.name, self._dialect.title)
            self._write()
            return
        if known.unterminated:
            self._unwritten += b"\n"
        for event in known.events:
            self._remember(event)
        self._seq = known.events[-1].seq
        self._judge.go_on(known.events)
        self._builder.go_on(self._judge.state)

    def close(self) -> None:
        """Let another process have the session."""
        os.close(self._file)
        self._lock.release()

    def _remember(self, event: events.Event) -> None:
        match event:
            case events.NotePrepared(text=text):
                self._note = text or ""
            case events.ReplyRejected(failure=failure):
                self._rejected = failure.message
            case events.ToolResult(call_id=call):
                self._recent.append(call)
            case events.RunStarted(task=text) | events.OperatorSpoke(text=text):
                self._recent.append(text)

    def _report(self, event: events.Event) -> None:
        self._remember(event)
        self._seq += 1
        self._unwritten += encode(self._redactor.redact(event.stamped(self._seq, event.at)))

    def _write(self) -> None:
        """All that came of an event at once: it is in the journal as a whole, or not at all."""
        with suppress(OSError):  # a full disk: the lines wait, in their order
            del self._unwritten[: os.write(self._file, self._unwritten)]

    def hear(
        self, heard: Heard, at: float, advise: Advise, redactor: Redactor, *, again: bool = False
    ) -> Advice:
        """Record an event, and say what the agent is told. `at`: seconds since the epoch; `redactor`: of the secrets
        that may stand in it; `again`: it may have been recorded already.
        """
        if again and self._recorded(heard):
            return self._advice(advise) if heard.moment is Moment.CALLS_ENDED else Advice()
        self._note = self._rejected = ""
        self._redactor = redactor
        try:
            return self._take(heard, at, advise)
        finally:
            self._write()
            self._redactor = _OF_SHAPES

    def _take(self, heard: Heard, at: float, advise: Advise) -> Advice:
        if not heard.attended:  # said by each event that has the mode, even if no prompt was heard
            self._transcript.operator_present = False
        if heard.moment not in {Moment.CALL_FAILED, Moment.CALLS_ENDED, Moment.NOTICE}:
            self._catch_up(heard, at)
            self._note, self._held = "", self._note or self._held
        match heard.moment:
            case Moment.PROMPT if self._is_prompt(heard.text):
                self._transcript.operator_present = heard.attended and self._dialect.answers.ask is not None
                self._builder.take(Said(_cut(heard.text), at), None)
            case Moment.BEFORE_CALL if advise == "refuse":
                return self._before(heard.calls[0][0], heard, at)
            case Moment.CALL_FAILED:
                self._failed |= {
                    call.id: (call, result) for call, result in heard.calls if result is not None
                }
                if self._in_batches is False:
                    self._catch_up(heard, at)
                    self._note, self._held = self._note or self._held, ""
            case Moment.CALLS_ENDED:
                self._in_batches = True
                self._ended(heard, at)
                self._note, self._held = self._note or self._held, ""
                self._begun.clear()
            case Moment.ANSWERED:
                self._answered(_cut(heard.text), at, may_go_on=self._may_go_on(heard, advise))
            case Moment.MODEL_FAILED:
                self._builder.take(Faulted(classified(heard.text), at), None)
            case Moment.NOTICE:
                self._builder.take(Remarked(_cut(heard.text), at), None)
            case Moment.ENDED:
                self._builder.end()
        self._add_answer(heard, at, advise)
        return self._advice(advise)

    def _is_prompt(self, text: str) -> bool:
        """False for what only sends the model on: our own words, or results of calls, which have no text."""
        return text != self._told if text else not self._builder.running

    def _recorded(self, heard: Heard) -> bool:
        """True if an event that was sent twice is in the journal."""
        match heard.moment:
            case Moment.CALLS_ENDED:
                return all(call.id in self._recent for call, _ in heard.calls)
            case Moment.PROMPT:
                return _cut(heard.text) in self._recent
            case Moment.ANSWERED | Moment.MODEL_FAILED | Moment.ENDED:
                return not self._builder.running
        return False

    def _advice(self, advise: Advise) -> Advice:
        if advise == "off":
            return Advice()
        marks = self._dialect.answers.frames_notes or not self._note
        note = sealed(self._note) if marks else tagged(self._note)
        if not self._rejected:
            return Advice(note=note)
        self._told = note or sealed(self._rejected)
        return Advice(go_on=self._told)

    def _add_answer(self, heard: Heard, at: float, advise: Advise) -> None:
        """If the model reads our words, it reads the operator's answer first."""
        goes_on = heard.moment is Moment.ANSWERED and self._may_go_on(heard, advise)
        noted = self._dialect.answers.note is not None and advise != "off"
        reads = goes_on or (heard.moment is Moment.CALLS_ENDED and noted)
        if reads and (said := self._operator_said(at)):
            self._note = f"{said}\n\n{self._note}".strip()
            self._rejected = self._note if goes_on else self._rejected

    def _operator_said(self, at: float) -> str:
        """The answer that somebody gave in a console that watches; from then on it is known here too."""
        text = take(self._folder)
        if not text:
            return ""
        self._builder.take(Said(text, at), None)
        return f"The operator answers: {cleaned(text)}"

    def _may_go_on(self, heard: Heard, advise: Advise) -> bool:
        return advise == "refuse" and not heard.goes_on and self._dialect.answers.go_on is not None

    def _before(self, call: Call, heard: Heard, at: float) -> Advice:
        recovery = self._judge.state.recovery
        if not heard.attended:  # whoever was there when the run began
            recovery = evolve(recovery, operator_present=False)
        key = recovery.key(call.name, call.input or {})
        permit = recovery.permit(call.name, key)
        if permit.allowed or _newer_file(
            heard.workspace, self._folder.parent.parent, self._failed_at.get(key, self._builder.at)
        ):
            self._begun[call.id] = call
            if len(self._begun) > _RECENT:
                del self._begun[next(iter(self._begun))]
            return Advice()
        if said := self._operator_said(at):
            return Advice(refuse=said)
        entry = recovery.of(AttemptLedger).entries.get(key)
        if (
            entry is not None
            and heard.attended
            and self._dialect.answers.ask is not None
            and key not in self._asked
        ):
            self._asked.add(key)
            return Advice(ask=_QUESTION.format(entry.count + entry.trials, framed(entry.last_message, 600)))
        reason = permit.reason
        if permit.earlier_result:
            reason = f"{reason}\nIts result was:{framed(permit.earlier_result, 4_000)}"
        refused = Result("denied", reason, at, reason, refusal=permit.refusal or "blocked")
        if call.id:
            self._refused[call.id] = refused
        if not self._dialect.fields.batch:
            self._builder.take(Turn(at, calls=[call], results={call.id: refused}), _MORE)
        return Advice(refuse=reason)

    def _catch_up(self, heard: Heard, at: float) -> None:
        """Record failures of which no event says that their reply is over. An agent that has none tells each failure;
        what else has begun has worked.
        """
        if self._failed and not self._in_batches:
            self._in_batches = False
            failed = dict(self._failed)
            calls = {**self._begun, **{key: call for key, (call, _) in failed.items()}}
            self._begun.clear()
            self._caught |= calls.keys()
            for key, call in calls.items():
                result = failed[key][1] if key in failed else Result("ok", "")
                self._ended(replace(heard, calls=((call, result),)), at)

    def _ended(self, heard: Heard, at: float) -> None:
        recovery = self._judge.state.recovery
        results: dict[str, Result] = {}
        calls: list[Call] = []
        for call, told in heard.calls:
            refused = self._refused.pop(call.id, None)
            if refused is not None and not self._dialect.fields.batch:
                continue  # recorded as it was refused
            if heard.moment is Moment.CALLS_ENDED and call.id in self._caught:
                continue
            calls.append(call)
            _, failed = self._failed.get(call.id, (call, None))
            result = refused or failed or told
            if result is None:
                continue
            content, message, hint = _cut(result.content), _cut(result.message), ""
            if result.status == "failed":
                key = recovery.key(call.name, call.input or {})
                self._asked.discard(key)
                self._failed_at[key] = at
                hint = _hint(call, message, heard.workspace)
            results[call.id] = replace(result, content=content, message=message, hint=hint, at=at)
        self._failed.clear()
        if calls:
            self._builder.take(Turn(at, calls=calls, results=results), _MORE)

    def _answered(self, text: str, at: float, *, may_go_on: bool) -> None:
        """The model is done; it goes on if the engine would not take its answer, and only once."""
        if text:
            rejected = may_go_on and self._judge.state.recovery.rejects_text(text)
            self._builder.take(Turn(at, text=text, rejected=NO_CALL if rejected else ""), _MORE)
        if not may_go_on:
            self._rejected = ""
        if self._builder.running and not self._rejected:
            self._builder.finish(events.Outcome.ANSWERED, answer=text)


_MORE = Remarked("")
"""The step's consequences are not known yet."""
_QUESTION = "It has failed {} times with the same error, and nothing has changed since. Run it once more? The error:{}"


def lane_folder(sessions: Path, agent: str, session: str, lane: str, at: float) -> Path:
    """The folder of a lane: the one that is there, or a new one. `at`: seconds since the epoch. Raises `OSError`."""
    digest = mark_of(agent, session, lane)
    for folder in sessions.glob(f"*-{digest}"):
        return folder
    folder = sessions / f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(at))}-{digest}"
    make_private(folder)
    mark_foreign(folder)
    return folder


def _has_events(journal: Path) -> bool:
    """True if its first line is whole: a daemon may have died, or the disk been full, before that."""
    with suppress(FileNotFoundError), journal.open("rb") as file:
        return file.readline(LONGEST).endswith(b"\n")
    return False


def _hint(call: Call, message: str, workspace: str) -> str:
    arguments = call.input or {}
    if not workspace or not isinstance(arguments.get("command"), str):
        return ""
    # The call that follows in it is of a tool of ours.
    return hint_for("bash", arguments, message, Workspace(Path(workspace))).partition(" To read it: ")[0]


def _cut(text: str, longest: int = LONGEST) -> str:
    return text if len(text) <= longest else f"{text[: longest // 2]}\n…\n{text[-longest // 2 :]}"


def _newer_file(workspace: str, own: Path, since: float) -> bool:
    """True if a file of the workspace was written after `since`, leaving out files that tools keep for
    themselves. `own`: the folder of our state, which may stand in the workspace.
    """
    ends = time.monotonic() + _LOOK
    top = Path(workspace)
    if not workspace or not top.is_dir():
        return False
    for entry in walk(top):
        if time.monotonic() > ends:
            return True  # too large to look at: nothing is refused for what was not seen
        with suppress(OSError):
            if (
                not entry.is_dir
                and not (top / entry.path).is_relative_to(own)
                and (top / entry.path).lstat().st_mtime > since
                and unexplained((), (entry.path,))
            ):
                return True
    return False
