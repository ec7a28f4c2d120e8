"""Runs to draw: event sequences folded by the real reducer, with times that are given and never read."""

from __future__ import annotations

import json
from typing import Any

from tui_agent.core import events
from tui_agent.core.fold import apply
from tui_agent.core.recovery.policy import PRESETS
from tui_agent.core.state import RunState

START = 1_800_000_000.0


class Story:
    """Tells a run event by event; `state` is what the panes are shown, `now` the time
    after the last event."""

    def __init__(self, policy: str = "combined", model: str = "gpt-5-mini", max_iterations: int = 50) -> None:
        self.state = RunState()
        self.events: list[events.Event] = []
        self.now = START
        self.seq = 0
        self.policy = policy
        self.model = model
        self.max_iterations = max_iterations
        self.iteration = 0
        self.calls = 0
        self.add(events.SessionStarted(session_id="s1", workspace="/home/ada/stats"))

    def add(self, event: events.Event, after: float = 0.4) -> Story:
        """One more event, `after` seconds later."""
        self.seq += 1
        self.now += after
        self.events.append(event.stamped(self.seq, self.now))
        self.state = apply(self.state, self.events[-1])
        return self

    def run(self, task: str) -> Story:
        """A run begins."""
        self.iteration = 0
        return self.add(
            events.RunStarted(
                run=self.state.run.number + 1,
                task=task,
                policy=self.policy,
                policy_settings=PRESETS[self.policy].model_dump(mode="json"),
                model=self.model,
                max_iterations=self.max_iterations,
                tools=("bash", "edit_file", "finish", "read_file"),
            )
        )

    def ask_model(self, note: str | None = None, attempt: int = 1) -> Story:
        """A request goes out."""
        if attempt == 1:
            self.iteration += 1
            self.add(events.IterationStarted(iteration=self.iteration), 0.1)
        return self.add(
            events.ModelCallStarted(
                iteration=self.iteration,
                attempt=attempt,
                model=self.model,
                messages=6,
                tokens=3200,
                note=note,
            )
        )

    def reply(
        self,
        text: str = "",
        *calls: tuple[str, dict[str, Any]],
        reasoning: str = "",
        cost: float | None = 0.0021,
    ) -> list[str]:
        """A complete reply; gives the ids of its calls."""
        made = []
        for tool, arguments in calls:
            self.calls += 1
            made.append(events.ToolCall(id=f"c{self.calls}", name=tool, arguments=json.dumps(arguments)))
        self.add(
            events.ReplyFinished(
                text=text,
                reasoning=reasoning,
                calls=tuple(made),
                model=self.model,
                prompt_tokens=3100,
                completion_tokens=180,
                cost=cost,
                duration=1.4,
            ),
            1.4,
        )
        self._open = {call.id: (call.name, json.loads(call.arguments), n) for n, call in enumerate(made)}
        return [call.id for call in made]

    def start(self, call_id: str) -> Story:
        """A call begins to run."""
        tool, arguments, index = self._open[call_id]
        return self.add(events.ToolStarted(call_id=call_id, tool=tool, input=arguments, index=index), 0.1)

    def succeed(
        self,
        call_id: str,
        content: str = "",
        diff: str = "",
        changed: tuple[str, ...] = (),
        duration: float = 0.4,
    ) -> Story:
        """A call ends well."""
        tool, arguments, index = self._open[call_id]
        return self.start(call_id).add(
            events.ToolSucceeded(
                call_id=call_id,
                tool=tool,
                input=arguments,
                index=index,
                content=content,
                diff=diff,
                changed=changed,
                duration=duration,
            ),
            duration,
        )

    def fail(
        self,
        call_id: str,
        message: str,
        kind: events.FailureKind = events.FailureKind.TOOL_EXECUTION,
        duration: float = 1.3,
    ) -> Story:
        """A call fails."""
        tool, arguments, index = self._open[call_id]
        failure = events.Failure(
            kind=kind, message=message, tool=tool, input=arguments, iteration=self.iteration
        )
        return self.start(call_id).add(
            events.ToolFailed(
                call_id=call_id,
                tool=tool,
                input=arguments,
                index=index,
                content=message,
                duration=duration,
                failure=failure,
            ),
            duration,
        )

    def refuse(self, call_id: str, refusal: Any, reason: str) -> Story:
        """A call is not executed."""
        tool, arguments, index = self._open[call_id]
        return self.add(
            events.ToolRefused(
                call_id=call_id,
                tool=tool,
                input=arguments,
                index=index,
                content=reason,
                refusal=refusal,
                reason=reason,
            )
        )

    def judge(self, note: str | None = None) -> Story:
        """The iteration ends and is judged by the real engine."""
        self.add(events.IterationFinished(iteration=self.iteration), 0.05)
        recovery = self.state.recovery
        top = recovery.strongest()
        self.add(
            events.VerdictReached(
                iteration=self.iteration,
                level=top.level,
                detector=top.detector,
                reason=top.reason,
                verdicts=recovery.last_verdicts,
            ),
            0.01,
        )
        return self.add(events.NotePrepared(text=note), 0.01)


NOTE = """The previous iteration failed with the following error:

bash failed: exit code 2
E   ModuleNotFoundError: No module named 'statistics_helpers'

Please analyze what went wrong and try a different approach.
The error was: exit code 2
Tool bash failed (attempt 2/3). One more failure of this call will need the operator's help."""

PYTEST = """============================= test session starts ==============================
platform linux -- Python 3.11.7, pytest-8.4.2, pluggy-1.6.0
rootdir: /home/ada/stats
collected 0 items / 1 error

==================================== ERRORS ====================================
_____________________ ERROR collecting tests/test_stats.py _____________________
tests/test_stats.py:3: in <module>
    from statistics_helpers import median
E   ModuleNotFoundError: No module named 'statistics_helpers'
=========================== short test summary info ============================
ERROR tests/test_stats.py
exit code 2"""

_DIFF_LINES = (
    "--- a/tests/test_stats.py",
    "+++ b/tests/test_stats.py",
    "@@ -1,6 +1,6 @@",
    " import pytest",
    " ",
    "-from statistics_helpers import median",
    "+from stats.core import mean, median",
    " ",
    " ",
    " def test_median_of_an_even_number_of_values():",
    "",
)
DIFF = "\n".join(_DIFF_LINES)

ANSWER = """The suite is green: **7 passed**.

## What was wrong
1. `tests/test_stats.py` imported `statistics_helpers`, which never existed; the module is `stats.core`.
2. `median` took the upper middle value instead of the mean of both:

```python
def median(values: list[float]) -> float:
    ordered = sorted(values)  # a copy
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2
```

| check | before | after |
|---|---|---|
| collected | 0 | 7 |
| passed | 0 | 7 |

> Nothing outside `stats/` and `tests/` was touched."""


def troubled() -> Story:
    """A run in trouble: the same command failed three times, is blocked; a note is pending; a call runs."""
    story = Story().run("Make the test suite of this project green. Do not touch the public API.")
    pytest = ("bash", {"command": "python -m pytest -q tests"})
    story.ask_model()
    (look,) = story.reply(
        "I'll start by looking at the test and the module that it exercises.",
        ("read_file", {"path": "tests/test_stats.py"}),
        reasoning="The user wants the suite green. First I should see what is there before running anything at all.",
    )
    story.succeed(
        look,
        "import pytest\n\nfrom statistics_helpers import median\n\n\ndef test_median():\n"
        + "    assert median([1, 2]) == 1.5\n" * 30,
        duration=0.02,
    )
    story.judge()
    for attempt in range(3):
        story.ask_model(NOTE if attempt else None)
        (call,) = story.reply("Let me run the tests." if not attempt else "", pytest)
        story.fail(call, PYTEST)
        story.judge(NOTE)
    story.add(
        events.EscalationRaised(
            id="q1",
            question="bash has failed 3 times with: python -m pytest -q tests\nHow shall it go on?",
            source="attempts",
            tool="bash",
            input=pytest[1],
        )
    )
    story.add(
        events.EscalationAnswered(
            id="q1",
            choice="skip",
            text="The module was renamed to stats.core, fix the import.",
            message="The module was renamed to stats.core, fix the import.",
            tool="bash",
            input=pytest[1],
        ),
        14,
    )
    story.ask_model(NOTE)
    first, second = story.reply(
        "Thanks. I'll fix the import and look for other uses of the old name.",
        (
            "edit_file",
            {
                "path": "tests/test_stats.py",
                "old": "from statistics_helpers import median",
                "new": "from stats.core import mean, median",
            },
        ),
        ("grep", {"pattern": "statistics_helpers", "path": "."}),
    )
    story.succeed(first, "1 replacement", DIFF, ("tests/test_stats.py",), 0.03)
    story.fail(second, "exit code 1: no match", duration=0.1)
    story.judge("Call of grep failed.")
    story.ask_model(NOTE)
    run, deny = story.reply(
        "",
        ("bash", {"command": "python -m pytest -q tests --maxfail=1"}),
        ("bash", {"command": "rm -rf build && git clean -fdx"}),
    )
    story.refuse(deny, "denied", "Leave untracked files alone.")
    story.start(run)
    story.add(events.ToolProgress(call_id=run, text="collected 7 items\n\ntests/test_stats.py ...F"), 1.2)
    story.add(events.NotePrepared(text=NOTE))
    return story


def answered() -> Story:
    """A run that recovered and ended with an answer in Markdown."""
    story = Story().run("Make the tests green.")
    story.ask_model()
    (call,) = story.reply("", ("bash", {"command": "pytest -q"}))
    story.fail(call, PYTEST).judge(NOTE)
    story.ask_model(NOTE)
    (edit,) = story.reply(
        "The import is wrong.", ("edit_file", {"path": "tests/test_stats.py", "old": "a", "new": "b"})
    )
    story.succeed(edit, "1 replacement", DIFF, ("tests/test_stats.py",)).judge()
    story.ask_model()
    (call,) = story.reply("", ("bash", {"command": "pytest -q"}))
    story.succeed(call, "7 passed in 0.12s", duration=0.9).judge()
    story.ask_model()
    story.reply(ANSWER)
    story.judge()
    return story.add(events.RunFinished(outcome=events.Outcome.ANSWERED, answer=ANSWER))


def tripped() -> Story:
    """The ring has tripped: five identical failures, a partial answer."""
    story = Story(policy="forge", model="ollama/qwen3:8b").run("Deploy to staging.")
    for _ in range(5):
        story.ask_model(NOTE)
        (call,) = story.reply("", ("bash", {"command": "make deploy"}), cost=None)
        story.fail(call, "exit code 2: make: *** No rule to make target 'deploy'.  Stop.").judge(NOTE)
    partial = "I could not deploy: the Makefile has no such target. Confidence 0.0 after 5 iterations."
    return story.add(
        events.RunFinished(
            outcome=events.Outcome.STOPPED,
            reason="tool_execution: 5 identical consecutive errors",
            answer=partial,
            detector="ring",
        )
    )


def backing_off() -> Story:
    """The model is overloaded; the third try waits."""
    story = Story().run("Summarise the changelog.")
    story.ask_model()
    story.add(events.ReplyDelta(text="The changelog begins with "), 0.8)
    fault = events.Fault(
        kind=events.FaultKind.STREAM_CUT,
        message="the stream ended before the reply was complete",
        advice="Nothing to do: it is tried again.",
    )
    story.add(
        events.ModelFaulted(
            fault=fault,
            iteration=1,
            attempt=1,
            model=story.model,
            action="retry",
            delay=1.2,
            rule="model.retry",
            partial_text="The changelog begins with ",
        )
    )
    story.ask_model(attempt=2)
    fault = events.Fault(
        kind=events.FaultKind.RATE_LIMIT,
        message="Rate limit reached for gpt-5-mini: 3 requests a minute",
        status=429,
        retry_after=8.0,
    )
    story.add(
        events.ModelFaulted(
            fault=fault,
            iteration=1,
            attempt=2,
            model=story.model,
            action="retry",
            delay=8.0,
            rule="model.retry",
        )
    )
    story.now += 3.1
    return story


def streaming() -> Story:
    """A reply comes in."""
    story = troubled()
    story.add(events.IterationFinished(iteration=story.iteration))
    story.ask_model()
    story.add(events.ReplyDelta(reasoning="One test still fails; the median of an even list is wrong."))
    return story.add(events.ReplyDelta(text=ANSWER[: ANSWER.index("| check")]))


STORIES = {
    "troubled": troubled,
    "answered": answered,
    "tripped": tripped,
    "backing_off": backing_off,
    "streaming": streaming,
}
