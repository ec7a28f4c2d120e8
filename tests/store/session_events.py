"""Events for tests of sessions: a stamped run as the engine would make it, and one of every type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.core.events import (
    Advised,
    AgentOffered,
    AgentOpened,
    AgentOptionChosen,
    ApprovalAnswered,
    ApprovalAsked,
    BackgroundEnded,
    BackgroundStarted,
    BreakerSet,
    BudgetRaised,
    CheckpointSaved,
    ClosingTurnOpened,
    CoherenceRepaired,
    Compacted,
    CompactionFailed,
    CompactionRequested,
    CompactionStarted,
    EscalationAnswered,
    EscalationRaised,
    Event,
    Failure,
    FailureKind,
    Fault,
    FaultKind,
    HookReported,
    Interrupted,
    IterationFinished,
    IterationStarted,
    LaneEvent,
    Level,
    LimitWaitStarted,
    MessageQueued,
    MessageUnqueued,
    Mode,
    ModeChanged,
    ModelCallStarted,
    ModelFaulted,
    ModelWindowLearned,
    NotePrepared,
    Notice,
    OperatorSpoke,
    Outcome,
    OwnCommandEnded,
    ParentPoint,
    ReplyDelta,
    ReplyFinished,
    ReplyRejected,
    Rewound,
    RulesChanged,
    RunFinished,
    RunStarted,
    ServerAnswered,
    ServerAsked,
    ServerChanged,
    SessionResumed,
    SessionStarted,
    SettingChanged,
    StartedAfresh,
    StopRequested,
    TitleChanged,
    ToolCall,
    ToolCancelled,
    ToolEnded,
    ToolFailed,
    ToolProgress,
    ToolRefused,
    ToolStarted,
    ToolSucceeded,
    VerdictReached,
    VerdictRecord,
    WaitSkipped,
    WindowCut,
)
from tui_agent.core.values import AgentChoice, AgentCommand, AgentOption
from tui_agent.store.journal import JOURNAL_NAME
from tui_agent.store.lines import encode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def stamp(events: Iterable[Event], first: int = 1, at: float = 1_700_000_000.0) -> list[Event]:
    """The events numbered from `first`, half a second apart."""
    return [event.stamped(number, at + number / 2) for number, event in enumerate(events, first)]


def start(session_id: str = "s1", workspace: str = "/w") -> SessionStarted:
    return SessionStarted(session_id=session_id, workspace=workspace)


def run_started(
    run: int = 1, task: str = "Fix the tests", policy: str = "combined", *, operator_present: bool = True
) -> RunStarted:
    return RunStarted(
        run=run,
        task=task,
        policy=policy,
        model="scripted/a",
        system_prompt="Be useful.",
        operator_present=operator_present,
    )


def iteration(number: int, *, call: str = "c1", fails: str = "", path: str = "a.py") -> list[Event]:
    """One whole iteration with one call that succeeds, or fails with the message `fails`."""
    given = {"path": path}
    common = {"call_id": call, "tool": "read_file", "input": given, "duration": 0.1}
    result: Event = ToolSucceeded(**common, content="text of the file")
    if fails:
        failure = Failure(
            kind=FailureKind.TOOL_EXECUTION, message=fails, tool="read_file", input=given, iteration=number
        )
        result = ToolFailed(**common, content=fails, failure=failure)
    arguments = f'{{"path":"{path}"}}'
    return [
        IterationStarted(iteration=number),
        ModelCallStarted(iteration=number, model="scripted/a", messages=2, tokens=40),
        ReplyDelta(text="Let me "),
        ReplyDelta(text="look."),
        ReplyFinished(
            text="Let me look.",
            calls=(ToolCall(id=call, name="read_file", arguments=arguments),),
            prompt_tokens=40,
            completion_tokens=5,
            cost=0.001,
        ),
        ToolStarted(call_id=call, tool="read_file", input=given),
        result,
        IterationFinished(iteration=number),
        VerdictReached(iteration=number, level=Level.GUIDE if fails else Level.CONTINUE),
        NotePrepared(text="Try another way." if fails else None),
    ]


def write_session(folder: Path, events: Iterable[Event], *, stamped: bool = False) -> list[Event]:
    """Write a session folder as the journal would; returns the stamped events."""
    listed = list(events) if stamped else stamp(events)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / JOURNAL_NAME).write_bytes(b"".join(encode(event) for event in listed))
    return listed


def one_of_every_type() -> list[Event]:
    """A journal's worth of events with every type in it at least once, fields filled."""
    failure = Failure(
        kind=FailureKind.TOOL_EXECUTION, message="no such file", tool="read_file", input={"path": "ü"}
    )
    common = {"call_id": "c1", "tool": "bash", "input": {"command": "ls", "n": [1, 2.5, None, {"k": True}]}}
    return [
        SessionStarted(
            session_id="s1",
            workspace="/w",
            app_version="0.1",
            parent=ParentPoint(session_id="s0", seq=3),
            source="",
        ),
        SessionResumed(app_version="0.1", dropped_bytes=7),
        TitleChanged(title="A title"),
        Notice(severity="warning", text="notice\n\u2028 ü 😀"),
        ModeChanged(mode=Mode.STEP),
        SettingChanged(setting="model", value="m2"),
        run_started(),
        MessageQueued(id="q1", text="later"),
        MessageUnqueued(id="q1"),
        OperatorSpoke(text="hello", queued="q2"),
        IterationStarted(iteration=1),
        ModelCallStarted(iteration=1, note="note", tools=("bash",)),
        ReplyDelta(text="te", reasoning="re"),
        ModelFaulted(
            fault=Fault(kind=FaultKind.RATE_LIMIT, message="slow down", status=429, retry_after=1.5),
            action="retry",
            delay=1.0,
        ),
        CoherenceRepaired(iteration=1, repairs={"orphan_result": 1}),
        ModelWindowLearned(model="scripted/a", tokens=8_000),
        WindowCut(to_seq=3, groups=2, tokens=40, rule="window.cut"),
        ReplyFinished(text="t", calls=(ToolCall(id="c1", name="bash", arguments='{"command":"ls"}'),)),
        ReplyRejected(failure=failure),
        ApprovalAsked(id="a1", call_id="c1", tool="bash", input={"command": "ls"}, rule="bash:ls"),
        ApprovalAnswered(id="a1", decision="session", input={"command": "ls -l"}),
        ToolStarted(**common),
        ToolProgress(call_id="c1", text="out"),
        ToolSucceeded(**common, content="ok", changed=("a.py",), diff="-a\n+b", output_file="/o"),
        ToolFailed(**common, content="bad", failure=failure),
        ToolRefused(**common, refusal="blocked", reason="three failures"),
        ToolCancelled(**common, reason="interrupted"),
        HookReported(hook="PostToolUse", command="true", status="ok"),
        IterationFinished(iteration=1),
        VerdictReached(
            iteration=1,
            level=Level.ESCALATE,
            detector="attempts",
            verdicts=(VerdictRecord(level=Level.ESCALATE, detector="attempts", reason="3/3"),),
        ),
        NotePrepared(text="note", edited=True),
        EscalationRaised(id="e1", question="what now?", source="attempts", options=("a", "b")),
        EscalationAnswered(id="e1", choice="answer", text="do it", message="do it"),
        BreakerSet(tool="bash", open=True),
        WaitSkipped(),
        CheckpointSaved(ref="abc", iteration=1, files=("a.py",), before="run 1"),
        Rewound(scope="files", to_seq=5, ref="abc", undo_ref="def", files=("a.py",)),
        Interrupted(cause="process_ended"),
        StopRequested(reason="enough", rule="run.interrupted"),
        RunFinished(outcome=Outcome.ANSWERED, answer="done"),
        CompactionRequested(instructions="keep the names"),
        CompactionStarted(model="m", to_seq=3, groups=2, tokens=900, rule="operator.compact"),
        Compacted(
            to_seq=3, groups=2, summary="s", remark="[s]", tokens_before=900, tokens_after=90, cost=0.1
        ),
        CompactionFailed(reason="too long", rule="window.summary_failed"),
        BackgroundStarted(id="b1", command="npm run dev", call_id="c1", output_file="/o/background-b1.txt"),
        BackgroundEnded(id="b1", command="npm run dev", how="exited", code=3, duration=1.5),
        ServerChanged(server="files", status="connected", tools=("files__read",), tools_tokens=40),
        ServerAsked(id="m1", server="files", purpose="trust", message="Start it?"),
        ServerAnswered(id="m1", server="files", decision="accept"),
        BudgetRaised(key="max_cost", limit=2.0, rule="budget.raised"),
        RulesChanged(added=("bash(make)",), removed=("bash(ls *)",)),
        OwnCommandEnded(command="make", printed="made\n", exit_code=0),
        ClosingTurnOpened(
            iteration=5,
            outcome=Outcome.STOPPED,
            reason="5 identical consecutive errors",
            detector="ring",
            ended_by="ring.stop",
            rule="closing.turn",
        ),
        LaneEvent(lane="c1", name="look", event=ToolStarted(call_id="c1", tool="bash", input={})),
        Advised(iteration=5, model="other/model", text="Look elsewhere.", cost=0.01, rule="note.advisor"),
        LimitWaitStarted(model="other/model", until=1_700_009_000.0, iteration=5, rule="operator.wait"),
        ToolEnded(**common, content="which way?"),
        StartedAfresh(
            iteration=5,
            number=1,
            reason="10 identical consecutive errors",
            detector="ring",
            ended_by="ring.stop",
            groups=5,
            to_seq=40,
            words_from=2,
            remark="[Fresh start 1]",
            tokens_before=900,
            tokens_after=100,
            rule="fresh.start",
        ),
        AgentOpened(agent="other", session="theirs", version="other 1.0", model="m"),
        AgentOffered(
            options=(
                AgentOption(
                    id="mode",
                    name="Mode",
                    kind="mode",
                    value="plan",
                    choices=(AgentChoice(value="plan", name="Plan", about="Reads only"),),
                ),
            ),
            commands=(AgentCommand(name="review", about="Review", hint="what"),),
        ),
        AgentOptionChosen(option="mode", value="plan", name="Plan"),
    ]


# The engine's own orders of events are lists of these; any order at all must fold, so they are drawn freely.
PIECES: list[list[Event]] = [
    *([event] for event in one_of_every_type()[1:]),
    [run_started()],
    iteration(1),
    iteration(2, call="c2", fails="boom", path="b.py"),
    [ModelCallStarted(iteration=1), ReplyDelta(text="par"), ReplyDelta(text="tial")],
    [
        ModelCallStarted(iteration=1),
        ReplyDelta(text="cut"),
        IterationFinished(iteration=1, cancelled=True),
    ],
    [ReplyDelta(text="stray", reasoning="x"), ReplyFinished(text="stray")],
    [
        ModelCallStarted(iteration=1),
        ReplyDelta(text="a"),
        Rewound(scope="conversation", to_seq=4),
        ReplyFinished(),
    ],
    [Rewound(scope="both", to_seq=12, undo_ref="x"), Rewound(scope="both", to_seq=12, undoes=30)],
    [Notice(text="between"), ReplyDelta(text="late")],
    [
        ReplyFinished(calls=(ToolCall(id="c9", name="bash"), ToolCall(id='c"\\', name="bash"))),
        ToolStarted(call_id="c9", tool="bash", input={}),
        ToolProgress(call_id="c9", text="one"),
        ToolProgress(call_id='c"\\', text="two"),
        ToolSucceeded(call_id="c9", tool="bash"),
    ],
    [ModelCallStarted(iteration=1), ReplyDelta(text="a"), NotePrepared(text="edited"), ReplyFinished()],
    [
        LaneEvent(lane="c9", name="look", event=event)
        for event in (
            run_started(),
            *(step for step in iteration(1, fails="boom") if not isinstance(step, ReplyDelta)),
            ApprovalAsked(id="a9", call_id="c1", tool="bash", input={}),
            RunFinished(outcome=Outcome.STOPPED),
        )
    ],
    [ToolProgress(call_id="c9", text="late"), IterationFinished(iteration=1)],
    [ToolProgress(call_id="c9", text="later"), ToolEnded(call_id="c9", tool="bash", content="later")],
    [ToolProgress(call_id='c"\\', text="more"), ToolCancelled(call_id='c"\\', tool="bash")],
]
