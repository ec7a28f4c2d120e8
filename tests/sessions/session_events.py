"""Events for tests of sessions: a stamped run as the engine would make it, and one of every type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent import events as e
from tui_agent.sessions.journal import JOURNAL_NAME
from tui_agent.sessions.lines import encode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def stamp(events: Iterable[e.Event], first: int = 1, at: float = 1_700_000_000.0) -> list[e.Event]:
    """The events numbered from `first`, half a second apart."""
    return [event.stamped(number, at + number / 2) for number, event in enumerate(events, first)]


def start(session_id: str = "s1", workspace: str = "/w") -> e.SessionStarted:
    return e.SessionStarted(session_id=session_id, workspace=workspace)


def run_started(run: int = 1, task: str = "Mend the tests", policy: str = "combined") -> e.RunStarted:
    return e.RunStarted(run=run, task=task, policy=policy, model="scripted/a", system_prompt="Be useful.")


def iteration(number: int, *, call: str = "c1", fails: str = "", path: str = "a.py") -> list[e.Event]:
    """One whole iteration with one call that succeeds, or fails with the message `fails`."""
    given = {"path": path}
    common = {"call_id": call, "tool": "read_file", "input": given, "duration": 0.1}
    result: e.Event = e.ToolSucceeded(**common, content="text of the file")
    if fails:
        failure = e.Failure(
            kind=e.FailureKind.TOOL_EXECUTION, message=fails, tool="read_file", input=given, iteration=number
        )
        result = e.ToolFailed(**common, content=fails, failure=failure)
    arguments = f'{{"path":"{path}"}}'
    return [
        e.IterationStarted(iteration=number),
        e.ModelCallStarted(iteration=number, model="scripted/a", messages=2, tokens=40),
        e.ReplyDelta(text="Let me "),
        e.ReplyDelta(text="look."),
        e.ReplyFinished(
            text="Let me look.",
            calls=(e.ToolCall(id=call, name="read_file", arguments=arguments),),
            prompt_tokens=40,
            completion_tokens=5,
            cost=0.001,
        ),
        e.ToolStarted(call_id=call, tool="read_file", input=given),
        result,
        e.IterationFinished(iteration=number),
        e.VerdictReached(iteration=number, level=e.Level.GUIDE if fails else e.Level.CONTINUE),
        e.NotePrepared(text="Try another way." if fails else None),
    ]


def write_session(folder: Path, events: Iterable[e.Event], *, stamped: bool = False) -> list[e.Event]:
    """Write a session folder as the journal would; returns the stamped events."""
    listed = list(events) if stamped else stamp(events)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / JOURNAL_NAME).write_bytes(b"".join(encode(event) for event in listed))
    return listed


def one_of_every_type() -> list[e.Event]:
    """A journal's worth of events with every type in it at least once, fields filled."""
    failure = e.Failure(
        kind=e.FailureKind.TOOL_EXECUTION, message="no such file", tool="read_file", input={"path": "ü"}
    )
    common = {"call_id": "c1", "tool": "bash", "input": {"command": "ls", "n": [1, 2.5, None, {"k": True}]}}
    return [
        e.SessionStarted(
            session_id="s1",
            workspace="/w",
            app_version="0.1",
            parent=e.ParentPoint(session_id="s0", seq=3),
            source="",
        ),
        e.SessionResumed(app_version="0.1", dropped_bytes=7),
        e.TitleChanged(title="A title"),
        e.Notice(severity="warning", text="notice\n\u2028 ü 😀"),
        e.ModeChanged(mode=e.Mode.STEP),
        e.SettingChanged(setting="model", value="m2"),
        run_started(),
        e.MessageQueued(id="q1", text="later"),
        e.MessageUnqueued(id="q1"),
        e.OperatorSpoke(text="hello", queued="q2"),
        e.IterationStarted(iteration=1),
        e.ModelCallStarted(iteration=1, note="note", tools=("bash",)),
        e.ReplyDelta(text="te", reasoning="re"),
        e.ModelFaulted(
            fault=e.Fault(kind=e.FaultKind.RATE_LIMIT, message="slow down", status=429, retry_after=1.5),
            action="retry",
            delay=1.0,
        ),
        e.CoherenceRepaired(iteration=1, repairs={"orphan_result": 1}),
        e.ReplyFinished(text="t", calls=(e.ToolCall(id="c1", name="bash", arguments='{"command":"ls"}'),)),
        e.ReplyRejected(failure=failure),
        e.ApprovalAsked(id="a1", call_id="c1", tool="bash", input={"command": "ls"}, rule="bash:ls"),
        e.ApprovalAnswered(id="a1", decision="session", input={"command": "ls -l"}),
        e.ToolStarted(**common),
        e.ToolProgress(call_id="c1", text="out"),
        e.ToolSucceeded(**common, content="ok", changed=("a.py",), diff="-a\n+b", output_file="/o"),
        e.ToolFailed(**common, content="bad", failure=failure),
        e.ToolRefused(**common, refusal="blocked", reason="three failures"),
        e.ToolCancelled(**common, reason="interrupted"),
        e.HookReported(hook="PostToolUse", command="true", status="ok"),
        e.IterationFinished(iteration=1),
        e.VerdictReached(
            iteration=1,
            level=e.Level.ESCALATE,
            detector="attempts",
            verdicts=(e.VerdictRecord(level=e.Level.ESCALATE, detector="attempts", reason="3/3"),),
        ),
        e.NotePrepared(text="note", edited=True),
        e.EscalationRaised(id="e1", question="what now?", source="attempts", options=("a", "b")),
        e.EscalationAnswered(id="e1", choice="answer", text="do it", message="do it"),
        e.BreakerSet(tool="bash", open=True),
        e.CheckpointSaved(ref="abc", iteration=1, files=("a.py",), before="run 1"),
        e.Rewound(scope="files", to_seq=5, ref="abc", undo_ref="def", files=("a.py",)),
        e.RunFinished(outcome=e.Outcome.ANSWERED, answer="done"),
    ]
