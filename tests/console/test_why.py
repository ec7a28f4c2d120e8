"""Why: what the journal says about a failure, a question and an outcome, and the screen that shows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.console.panes.stories import Story
from tests.console.real_session import real_live
from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import start_session
from tui_agent.console.cards.escalation import EscalationCard
from tui_agent.console.screens.report import ReportPane, ReportScreen
from tui_agent.core.events import (
    EscalationAnswered,
    EscalationRaised,
    Event,
    ModelCallStarted,
    Notice,
    Outcome,
    ReplyFinished,
    RunFinished,
    RunStarted,
    ToolFailed,
    ToolSucceeded,
    VerdictReached,
)
from tui_agent.frontend.lines.styled import text_of
from tui_agent.frontend.lines.why import why_lines
from tui_agent.frontend.why import explain, newest_trouble
from tui_agent.runtime.operator import EscalationReply
from tui_agent.session.replay import Replay
from tui_agent.store.journal import read_journal

READ = {"calls": [{"tool": "read_file", "args": {"path": "missing.py"}}]}
WRITE = {"calls": [{"tool": "write_file", "args": {"path": "missing.py", "content": "x = 1\n"}}]}
OTHER = {"calls": [{"tool": "read_file", "args": {"path": "other.py"}}]}
FINISH = {"calls": [{"tool": "finish", "args": {"answer": "done"}}]}


@pytest.fixture
async def recorded(tmp_path: Path) -> tuple[Replay, tuple[Event, ...]]:
    """A call that fails three times, is asked about, allowed once more, and succeeds after the file was written."""
    operator = ScriptedOperator()
    operator.answers.append(EscalationReply("answer", "try again"))
    turns = [READ, READ, READ, WRITE, READ, FINISH]
    live = await start_session(tmp_path, turns, operator=operator)
    await live.run("read it")
    folder = live.session.folder
    await live.close()
    return Replay.open(folder), read_journal(folder).events


def seqs(events: tuple[Event, ...], kind: type[Event]) -> list[int]:
    return [event.seq for event in events if isinstance(event, kind)]


async def test_a_failure_is_told_from_its_error_to_what_became_of_it(
    recorded: tuple[Replay, tuple[Event, ...]],
) -> None:
    replay, events = recorded
    why = explain(replay, seqs(events, ToolFailed)[1])
    assert why.title == "read_file missing.py"
    assert why.step == 2
    assert "missing.py" in why.cause
    assert why.same_as == (1,)
    counts = {count.detector: count for count in why.counts}
    assert counts["attempts"].stands.startswith("read_file: 2 of 3 failures of this call")
    assert (counts["attempts"].level, counts["attempts"].rule) == ("guide", "attempts.guide")
    assert counts["streak"].stands == "2 of 3 failing steps in a row"
    assert (counts["form"].level, counts["form"].reason) == ("continue", ""), "used, and nothing to say"
    (judged,) = (event for event in events if isinstance(event, VerdictReached) and event.iteration == 2)
    assert [record.detector for record in judged.verdicts] == ["attempts", "ring", "streak"], (
        "those that spoke"
    )
    assert "missing.py" in why.read
    assert "The second failure of this call" in why.note
    assert why.rule == "attempts.guide"
    assert why.section is not None
    assert why.next.startswith("recovered in step 5: the same call succeeded")


async def test_a_rule_across_an_error_is_cut_to_the_width_and_never_wrapped(
    recorded: tuple[Replay, tuple[Event, ...]],
) -> None:
    replay, events = recorded
    raw = f"E\n{'=' * 70}\nERROR: tests.test_cart\n{'-' * 70}\nRan 1 test"
    why = replace(explain(replay, seqs(events, ToolFailed)[1]), raw=raw)
    lines = [text_of(line).strip() for line in why_lines(why, 60)]
    rules = [line for line in lines if line and set(line) <= set("=-")]
    assert [len(rule) for rule in rules] == [58, 58]


async def test_a_reply_and_a_call_of_it_is_the_calls_result(
    recorded: tuple[Replay, tuple[Event, ...]],
) -> None:
    replay, events = recorded
    failed = next(event for event in events if isinstance(event, ToolFailed))
    why = explain(replay, seqs(events, ReplyFinished)[0], failed.call_id)
    assert (why.title, why.step) == ("read_file missing.py", 1)


@pytest.mark.parametrize("kind", [EscalationRaised, VerdictReached, RunFinished])
async def test_questions_verdicts_and_outcomes_are_explained_too(
    recorded: tuple[Replay, tuple[Event, ...]], kind: type[Event]
) -> None:
    replay, events = recorded
    why = explain(replay, seqs(events, kind)[-1])
    assert why.title
    assert why.counts
    if kind is EscalationRaised:
        assert why.happened == "the operator was asked about read_file missing.py"
    if kind is RunFinished:
        assert why.next == "", "an answer is no failure"


async def test_a_question_is_told_with_the_counts_that_led_to_it(
    recorded: tuple[Replay, tuple[Event, ...]],
) -> None:
    replay, events = recorded
    for kind in (EscalationRaised, EscalationAnswered):
        counts = {count.detector: count for count in explain(replay, seqs(events, kind)[0]).counts}
        assert counts["streak"].stands == "3 of 3 failing steps in a row", "the answer begins them anew"
        assert counts["cognition"].stands.startswith("3 of 4 steps without progress")
        assert counts["attempts"].stands == "read_file missing.py: 3 of 3 failures, blocked"


async def test_what_became_of_a_failure_is_told_by_its_own_run(tmp_path: Path) -> None:
    operator = ScriptedOperator()
    operator.answers.append(EscalationReply("retry"))
    turns = [READ, WRITE, READ, FINISH, OTHER, FINISH, FINISH]
    live = await start_session(tmp_path, turns, operator=operator)
    for task in ("read it", "read the other", "rest"):
        await live.run(task)
    folder = live.session.folder
    await live.close()
    replay, events = Replay.open(folder), read_journal(folder).events
    recovered, left = (explain(replay, seq).next for seq in seqs(events, ToolFailed))
    assert recovered.startswith("recovered in step 3: the same call succeeded")
    assert left == "it was not recovered; the run ended: answered"


async def test_a_success_is_not_told_with_the_failure_of_another_call(
    recorded: tuple[Replay, tuple[Event, ...]],
) -> None:
    replay, events = recorded
    wrote, read, _ = (explain(replay, seq) for seq in seqs(events, ToolSucceeded))
    assert (wrote.title, wrote.happened) == ("write_file missing.py", "the call succeeded")
    assert (wrote.cause, wrote.raw, wrote.same_as, wrote.next) == ("", "", (), "")
    assert {count.detector: count.stands for count in wrote.counts}[
        "attempts"
    ] == "no failure of this call counts"
    assert read.happened.startswith(
        "the call succeeded: read_file missing.py had failed 3 times, last with: "
    )
    assert read.next.startswith("recovered in step 5: the same call succeeded")


async def test_before_the_first_verdict_the_detectors_count_nothing(
    recorded: tuple[Replay, tuple[Event, ...]],
) -> None:
    replay, events = recorded
    why = explain(replay, seqs(events, RunStarted)[0])
    assert {count.level for count in why.counts} == {"continue"}, "used by the policy, and nothing to say"


async def test_a_note_is_told_as_what_the_model_read_about_its_step(
    recorded: tuple[Replay, tuple[Event, ...]],
) -> None:
    replay, events = recorded
    called = [event for event in events if isinstance(event, ModelCallStarted) and event.note]
    why = explain(replay, called[0].seq)
    assert (why.title, why.step, why.note) == ("the note to the model", 2, called[0].note)
    assert "missing.py" in why.cause


async def test_a_broken_reply_and_a_later_failure_of_the_same_call_have_ends_of_their_own(
    tmp_path: Path,
) -> None:
    unknown = {"calls": [{"tool": "nosuch", "args": {}}]}
    remove = {"calls": [{"tool": "bash", "args": {"command": "rm missing.py"}}]}
    live = await start_session(tmp_path, [READ, WRITE, READ, remove, READ, unknown, FINISH, FINISH])
    await live.run("read it")
    await live.run("again")
    folder = live.session.folder
    await live.close()
    replay, events = Replay.open(folder), read_journal(folder).events
    first, second, form = (explain(replay, seq) for seq in seqs(events, ToolFailed))
    assert first.next.startswith("recovered in step 3")
    assert second.next == "it was not recovered; the run ended: answered"
    assert form.next.startswith("recovered in step 7")


async def test_every_event_of_the_journal_can_be_asked_about(
    recorded: tuple[Replay, tuple[Event, ...]],
) -> None:
    replay, events = recorded
    for event in events:
        title = explain(replay, event.seq).title
        assert title
        assert type(event).__name__ not in title


async def test_findings_are_told_as_an_answer_and_once_more_with_nothing_changed_as_a_failure(
    tmp_path: Path,
) -> None:
    check = {"calls": [{"tool": "bash", "args": {"command": "python3 -m unittest"}}]}
    files = {
        "test_it.py": "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.fail('no')\n"
    }
    live = await start_session(tmp_path, [check, check, FINISH], files=files)
    await live.run("test it")
    folder = live.session.folder
    await live.close()
    first, second = seqs(read_journal(folder).events, ToolFailed)
    replay = Replay.open(folder)
    told = explain(replay, first)
    assert (told.happened, told.rule) == ("an answer by its exit code, and no failure", "failure.findings")
    again = explain(replay, second)
    assert again.happened == "the same findings once more with nothing changed since: counted as a failure"
    assert again.rule == "attempts.guide"


async def test_a_later_run_is_not_explained_by_a_verdict_on_an_earlier_one(tmp_path: Path) -> None:
    live = await start_session(tmp_path, [READ, FINISH, FINISH])
    await live.run("read it")
    await live.run("and now?")
    folder = live.session.folder
    await live.close()
    why = explain(Replay.open(folder), seqs(read_journal(folder).events, RunFinished)[-1])
    assert (why.rule, why.section) == ("", None)
    assert {count.level for count in why.counts} == {"continue"}


async def test_what_the_timeline_says_of_an_event_is_said_there_too() -> None:
    story = Story().run("task").add(Notice(text="The customer hung up."))
    seq = story.seq
    story.add(RunFinished(outcome=Outcome.ANSWERED)).add(Notice(text="A grade came later."))
    assert explain(Replay.of(story.events), seq).happened == "The customer hung up."
    assert explain(Replay.of(story.events), seq + 1).happened == "", "the title says that it was answered"
    assert newest_trouble(story.state) == seq + 1, "the end, and no remark after it"


async def test_w_on_the_card_and_on_a_pane_opens_it(tmp_path: Path) -> None:
    async with real_live(tmp_path, [READ, READ, READ, FINISH]) as console:
        await console.session.submit("read it")
        card = console.screen.card_host
        assert card is not None
        await console.until(lambda: isinstance(card.card, EscalationCard) and card.card.has_focus_within)
        await console.press("w", "enter")
        await console.opens(ReportScreen)
        pane = console.app.screen.query_one(ReportPane)
        await console.until(lambda: pane.lines)
        text = "\n".join(text_of(line) for line in pane.lines)
        assert "What the detectors counted" in text
        assert "attempts.escalate" in text
        await console.press("escape")
        await console.say("/jump timeline")
        await console.until(
            lambda: console.screen.focused is not None and console.screen.focused.id == "timeline"
        )
        await console.press("up", "w")
        await console.opens(ReportScreen)
