"""A long, realistic session from a seed, for benchmarks: what an agent does in hours, without one.

The mix is that of recorded coding sessions: streamed replies in pieces, reads and searches, edits, test runs with
progress, one call in eight failing (some of them again and again), questions to the operator now and then, runs
of some dozens of iterations. Deterministic: the same seed and length give the same bytes.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

from tui_agent.core.events import (
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
    Outcome,
    ReplyDelta,
    ReplyFinished,
    RunFinished,
    RunStarted,
    SessionStarted,
    ToolCall,
    ToolFailed,
    ToolProgress,
    ToolStarted,
    ToolSucceeded,
    VerdictReached,
    VerdictRecord,
)
from tui_agent.core.recovery.signature import call_key
from tui_agent.store.lines import encode

_WORDS = [
    "look",
    "at",
    "the",
    "failing",
    "test",
    "first",
    "then",
    "read",
    "parser",
    "change",
    "what",
    "it",
    "returns",
]
_FILES = [f"src/pkg/module_{number}.py" for number in range(40)]
_ERRORS = (
    "FileNotFoundError: no such file: {path}; nearest: src/pkg/module_1.py",
    "exit code 1\nFAILED tests/test_{n}.py::test_case - AssertionError: assert {n} == 4",
    "old text not found in {path}; closest lines:\n  12: def parse(text):",
)


class _Clock:
    def __init__(self, session_id: str, choose: random.Random) -> None:
        self.seq = 0
        self.now = 1_700_000_000.0
        self.session_id = session_id
        self.choose = choose

    def stamp(self, event: Event) -> Event:
        self.seq += 1
        self.now = round(self.now + self.choose.expovariate(4.0), 3)
        return event.stamped(self.seq, self.now)


def long_session(events: int, seed: int = 1, session_id: str = "bench") -> Iterator[Event]:
    """`events` stamped events of one session."""
    choose = random.Random(seed)
    clock = _Clock(session_id, choose)
    for event in _endless(choose, session_id):
        if clock.seq >= events:
            return
        yield clock.stamp(event)


def _endless(choose: random.Random, session_id: str) -> Iterator[Event]:
    yield SessionStarted(session_id=session_id, workspace="/home/me/project", app_version="0.1")
    run = 0
    while True:
        run += 1
        yield RunStarted(
            run=run,
            task=f"Mend the failing tests of part {run} and tell what was wrong",
            policy="combined",
            model="scripted/bench",
            system_prompt="You are a careful engineer. " * 20,
            tools=("read_file", "edit_file", "bash", "grep"),
        )
        for number in range(1, choose.randint(20, 60)):
            yield from _iteration(choose, run, number)
        yield RunFinished(outcome=Outcome.ANSWERED, answer=_prose(choose, 60))


def _prose(choose: random.Random, words: int) -> str:
    return " ".join(choose.choices(_WORDS, k=words))


def _iteration(choose: random.Random, run: int, number: int) -> Iterator[Event]:
    yield IterationStarted(iteration=number)
    yield ModelCallStarted(iteration=number, model="scripted/bench", messages=2 * number, tokens=200 * number)
    if choose.random() < 0.02:
        fault = Fault(kind=FaultKind.OVERLOADED, message="529 overloaded", status=529)
        yield ModelFaulted(fault=fault, iteration=number, action="retry", delay=1.5, model="scripted/bench")
        yield ModelCallStarted(iteration=number, attempt=2, model="scripted/bench")
    pieces = [_prose(choose, 8) + " " for _ in range(choose.randint(2, 12))]
    for piece in pieces:
        yield ReplyDelta(text=piece)
    calls = [_call(choose, run, number, index) for index in range(choose.choice((1, 1, 1, 2, 3)))]
    yield ReplyFinished(
        text="".join(pieces),
        calls=tuple(call for call, _ in calls),
        model="scripted/bench",
        prompt_tokens=200 * number,
        completion_tokens=90,
        cost=0.0012,
        duration=3.2,
    )
    failed = False
    for index, (call, given) in enumerate(calls):
        yield ToolStarted(call_id=call.id, tool=call.name, input=given, key=call.key, index=index)
        if call.name == "bash":
            for _ in range(choose.randint(1, 6)):
                yield ToolProgress(call_id=call.id, text=_prose(choose, 12) + "\n")
        fails = choose.random() < 0.13
        failed = failed or fails
        yield _result(choose, call, given, index, number, fails)
    yield IterationFinished(iteration=number)
    level = Level.GUIDE if failed else Level.CONTINUE
    reason = "a tool failed" if failed else ""
    yield VerdictReached(
        iteration=number,
        level=level,
        detector="attempts" if failed else "",
        reason=reason,
        verdicts=(VerdictRecord(level=level, detector="attempts", reason=reason),) if failed else (),
    )
    yield NotePrepared(text="The previous iteration failed. Try another way." if failed else None)
    if choose.random() < 0.01:
        yield EscalationRaised(id=f"e{run}-{number}", question="What now?", source="attempts")
        yield EscalationAnswered(id=f"e{run}-{number}", choice="answer", text="Go on", message="Go on")


def _call(choose: random.Random, run: int, number: int, index: int) -> tuple[ToolCall, dict[str, str]]:
    name = choose.choice(("read_file", "read_file", "grep", "edit_file", "bash"))
    path = choose.choice(_FILES)
    given = {
        "read_file": {"path": path},
        "grep": {"pattern": choose.choice(_WORDS), "path": "src"},
        "edit_file": {"path": path, "old": _prose(choose, 12), "new": _prose(choose, 14)},
        "bash": {"command": f"python -m pytest tests/test_{choose.randint(1, 9)}.py -q"},
    }[name]
    arguments = "{" + ", ".join(f'"{key}": "{value}"' for key, value in given.items()) + "}"
    call_id = f"call-{run}-{number}-{index}"
    return ToolCall(id=call_id, name=name, arguments=arguments, key=call_key(name, given)), given


def _result(
    choose: random.Random, call: ToolCall, given: dict[str, str], index: int, number: int, fails: bool
) -> Event:
    if not fails:
        changed = (given["path"],) if call.name == "edit_file" else ()
        return ToolSucceeded(
            call_id=call.id,
            tool=call.name,
            input=given,
            key=call.key,
            index=index,
            content="\n".join(_prose(choose, 10) for _ in range(choose.randint(1, 20))),
            duration=round(choose.random(), 3),
            changed=changed,
            diff="-old line\n+new line\n" if changed else "",
        )
    message = choose.choice(_ERRORS).format(path=given.get("path", "src"), n=choose.randint(1, 9))
    failure = Failure(
        kind=FailureKind.TOOL_EXECUTION, message=message, tool=call.name, input=given, iteration=number
    )
    return ToolFailed(
        call_id=call.id,
        tool=call.name,
        input=given,
        key=call.key,
        index=index,
        content=message,
        failure=failure,
    )


def write_long_session(path: Path, events: int, seed: int = 1, session_id: str = "bench") -> int:
    """Write the session's journal to `path`; returns its size in bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.writelines(encode(event) for event in long_session(events, seed, session_id))
    return path.stat().st_size


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    print(f"{write_long_session(chosen.path, chosen.events, chosen.seed):,} bytes")
