"""The fresh start through the production loop: another window, what was learned, new counts; and what undoes it."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

from tests.frontend.scripted_host import ScriptedHost
from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import replayed, start_session
from tests.runtime.test_closing_turn import MISSING, run, turn
from tui_agent.core import events
from tui_agent.frontend.lines.diff import FileDiff
from tui_agent.runtime.operator import EscalationReply

WORKS = turn(("bash", {"command": "echo 41 passed"}))
WRITES = turn(("write_file", {"path": "note.md", "content": "half\n"}))


async def test_alone_a_run_that_goes_in_circles_begins_anew_and_can_still_succeed(tmp_path: Path) -> None:
    live = await run(tmp_path, [WRITES, WORKS, *MISSING[:10], WORKS, "note.md says it."])
    (started,) = live.of(events.StartedAfresh)
    assert (started.number, started.ended_by, started.by) == (1, "ring.stop", "policy")
    system, task, summary = live.sent(12)
    assert (system["role"], task["content"]) == ("system", "go")
    text = summary["content"]
    assert text == started.remark
    for part in (
        "Goal:\n",
        "- changed: note.md",
        "- succeeded: echo 41 passed: 41 passed",
        "Tried without success",
        "cat missing-0",
        "exit code 7",
        "Not tried yet:\n- tools that were not called: ",
    ):
        assert part in text, part
    assert started.tokens_after < started.tokens_before
    assert live.state.run.outcome is events.Outcome.ANSWERED
    assert live.of(events.RunFinished)[0].answer == "note.md says it."
    # The scripted model goes by the replies that it reads, so it begins its script anew.
    assert len(live.of(events.ToolFailed)) == 10 + 4, (
        "one try was left to each call that had failed three times"
    )


async def test_it_happens_twice_and_then_the_run_ends(tmp_path: Path) -> None:
    live = await run(tmp_path, [MISSING[0]] * 60)
    assert [one.number for one in live.of(events.StartedAfresh)] == [1, 2]
    assert live.state.run.outcome is events.Outcome.STOPPED
    assert len(live.of(events.ToolFailed)) == 5, "three, and one after each fresh start"


async def test_the_operator_chooses_it_and_a_rewind_brings_the_steps_back(tmp_path: Path) -> None:
    answer = EscalationReply("fresh_start", "leave those files alone")
    live = await start_session(
        tmp_path,
        [*MISSING[:4], WORKS, "done", "and again"],
        operator=ScriptedOperator(answers=deque([answer])),
        approve="all",
    )
    await live.run()
    (started,) = live.of(events.StartedAfresh)
    assert (started.by, started.rule) == ("operator", "operator.fresh_start")
    words = [message["content"] for message in live.sent(4)[1:]]
    assert words == ["go", "leave those files alone", started.remark]
    rewinding = live.session.rewinding
    point = next(point for point in rewinding.points() if "summarised" in point.label)
    await rewinding.carry_out(await rewinding.plan(point, "conversation"))
    assert live.state.history.summary is None
    await live.run("on")
    assert "missing-0" in str(live.sent(6)), "the steps before are there again"
    await live.close()
    assert replayed(live.session).history == live.state.history


TESTS = "grep -q good app.py && echo '5 passed in 0.1s' || echo '2 passed, 3 failed in 0.1s'"
TESTED = turn(("bash", {"command": TESTS}))


def writing(text: str) -> dict[str, Any]:
    return turn(("write_file", {"path": "app.py", "content": text}))


class LookingOperator(ScriptedOperator):
    """Looks by `/diff back` at what an answer would bring back before it is given."""

    host: ScriptedHost
    seen: list[tuple[str, list[FileDiff]]]

    async def answer(self, raised: events.EscalationRaised) -> EscalationReply:
        async def show_changes(files: list[FileDiff], title: str) -> None:
            self.seen.append((title, files))

        self.host.__dict__["show_changes"] = show_changes
        assert await self.host.typed("/diff back") == []
        return await super().answer(raised)


async def test_the_operator_may_have_the_files_at_which_more_tests_passed(tmp_path: Path) -> None:
    option = "fresh start, files of step 1 (5 passed, now 2; see /diff back)"
    operator = LookingOperator(answers=deque([EscalationReply("answer", option)] * 2))
    live = await start_session(
        tmp_path,
        [writing("good\n"), TESTED, writing("bad\n"), TESTED, *MISSING[:4], "done"],
        operator=operator,
        approve="all",
        files={"other.txt": "x"},
    )
    operator.host, operator.seen = ScriptedHost(live.session), []
    held: list[str] = []

    def look(event: events.Event, _: object) -> None:
        if isinstance(event, events.StartedAfresh):
            held.append((tmp_path / "workspace" / "app.py").read_text())

    live.session.subscribe(look)
    await live.session.submit("go")
    await live.until(lambda state: state.recovery.fresh_starts > 0)
    await live.session.stop("seen")
    (asked, *_) = live.of(events.EscalationRaised)
    assert asked.options == (option,)
    (title, (change,)), *_ = operator.seen
    assert title == "Changes since step 1, which a fresh start with its files takes back"
    assert (change.name, change.added, change.removed) == ("app.py", 1, 1)
    assert "-good" in change.diff
    assert "+bad" in change.diff
    (started,) = live.of(events.StartedAfresh)
    assert started.files == ("app.py",)
    assert "Files are as they were at step 1: 5 tests passed" in started.remark
    assert held == ["good\n"]
    assert await operator.host.typed("/diff back") == ["The files of step 1 stand as they were."]
    await live.close()
    assert replayed(live.session).recovery == live.state.recovery
