"""Event sequences that no loop would make but a journal may hold: any order, hostile texts, huge and empty ones."""

from __future__ import annotations

from hypothesis import strategies as st

from tui_agent.core.events import (
    Compacted,
    CompactionFailed,
    CompactionStarted,
    EscalationAnswered,
    EscalationRaised,
    Event,
    Failure,
    FailureKind,
    Fault,
    FaultKind,
    IterationFinished,
    IterationStarted,
    Level,
    ModelCallStarted,
    ModelFaulted,
    NotePrepared,
    Notice,
    OperatorSpoke,
    Outcome,
    ReplyDelta,
    ReplyFinished,
    ReplyRejected,
    RunFinished,
    RunStarted,
    ToolCall,
    ToolFailed,
    ToolProgress,
    ToolRefused,
    ToolStarted,
    ToolSucceeded,
    VerdictReached,
)

HOSTILE = [
    "",
    "\x1b[2J\x1b]0;owned\x07",
    "\x1b]52;c;c3RlYWw=\x07",
    "[/red][bold]markup[@click=app.quit]",
    "a\tb\r\nc\rd",
    "\u202etxt.exe\u202c",
    "日本語の長い文がここにあります。改行なしで続きます。",
    "👩\u200d💻 🇩🇪 ❤\ufe0f e" + "\u0301" * 20,
    "\x9b31m\x00\x07\x7f",
    "\ud800 lone",
    "x" * 3_000,
    "```python\ndef f():\n    return 1\n```\n# h\n- a\n| a | b |\n|---|---|\n| 1 | 2 |",
    "\n\n\n",
    'Traceback (most recent call last):\n  File "a.py"\nValueError: no',
    "===== " + "=" * 200,
]

texts = st.sampled_from(HOSTILE) | st.text(max_size=80)
names = st.sampled_from(["bash", "read_file", "edit_file", "finish", "grep", "mcp__x\x1b[1m", "日本"])
ids = st.sampled_from(["c1", "c2", "c3"])
inputs = st.fixed_dictionaries(
    {}, optional={"command": texts, "path": texts, "n": st.integers(0, 9), "deep": st.just({"a": [1, None]})}
)
iterations = st.integers(1, 5)
DIFF = "--- a\n+++ b\n@@ -1,2 +1,3 @@ def f():\n-old\x1b[0m\n+new\n+日本\n same\n@@ -90 +91 @@\n-x\n"


def _failure(kind: FailureKind, message: str, tool: str) -> Failure:
    return Failure(kind=kind, message=message, tool=tool, iteration=1)


failures = st.builds(_failure, st.sampled_from(list(FailureKind)), texts, names)
calls = st.builds(ToolCall, id=ids, name=names, arguments=texts)
faults = st.builds(
    Fault,
    kind=st.sampled_from(list(FaultKind)),
    message=texts,
    advice=texts,
    status=st.none() | st.just(429),
)

events = st.one_of(
    st.builds(
        RunStarted,
        run=st.integers(1, 3),
        task=texts,
        policy=st.sampled_from(["combined", "forge", "hpd", "x\x1b"]),
        model=texts,
    ),
    st.builds(IterationStarted, iteration=iterations),
    st.builds(
        ModelCallStarted,
        iteration=iterations,
        attempt=st.integers(1, 3),
        model=texts,
        note=st.none() | texts,
    ),
    st.builds(ReplyDelta, text=texts, reasoning=texts),
    st.builds(
        ReplyFinished,
        text=texts,
        reasoning=texts,
        calls=st.lists(calls, max_size=3).map(tuple),
        cost=st.none() | st.just(0.1),
    ),
    st.builds(ReplyRejected, failure=failures),
    st.builds(
        ModelFaulted,
        fault=faults,
        action=st.sampled_from(["retry", "fallback", "shrink", "next_iteration", "degrade", "stop", "ask"]),
        delay=st.sampled_from([0.0, 5.0]),
        next_model=texts,
        partial_text=texts,
    ),
    st.builds(ToolStarted, call_id=ids, tool=names, input=inputs),
    st.builds(ToolProgress, call_id=ids, text=texts),
    st.builds(
        ToolSucceeded,
        call_id=ids,
        tool=names,
        input=inputs,
        content=texts,
        diff=st.sampled_from(["", DIFF, "junk"]),
    ),
    st.builds(ToolFailed, call_id=ids, tool=names, input=inputs, content=texts, failure=failures),
    st.builds(
        ToolRefused,
        call_id=ids,
        tool=names,
        input=inputs,
        refusal=st.sampled_from(["denied", "blocked", "withheld", "breaker"]),
        reason=texts,
    ),
    st.builds(IterationFinished, iteration=iterations),
    st.builds(
        VerdictReached,
        iteration=iterations,
        level=st.sampled_from(list(Level)),
        detector=texts,
        reason=texts,
    ),
    st.builds(NotePrepared, text=st.none() | texts, edited=st.booleans()),
    st.builds(EscalationRaised, id=st.just("q"), question=texts, source=texts),
    st.builds(
        EscalationAnswered,
        id=st.just("q"),
        choice=st.sampled_from(["answer", "retry", "stop"]),
        text=texts,
        message=texts,
    ),
    st.builds(Notice, severity=st.sampled_from(["info", "warning", "error"]), text=texts),
    st.builds(OperatorSpoke, text=texts),
    st.builds(CompactionStarted, model=texts, to_seq=iterations, groups=iterations, tokens=iterations),
    st.builds(
        Compacted,
        to_seq=iterations,
        groups=iterations,
        summary=texts,
        remark=texts,
        tokens_before=st.just(9_000),
        tokens_after=iterations,
        model=texts,
        cost=st.none() | st.just(0.1),
    ),
    st.builds(CompactionFailed, reason=texts, model=texts),
    st.builds(RunFinished, outcome=st.sampled_from(list(Outcome)), reason=texts, answer=texts),
)


def event_sequences(size: int = 30) -> st.SearchStrategy[list[Event]]:
    """Up to `size` events in any order."""
    return st.lists(events, max_size=size)
