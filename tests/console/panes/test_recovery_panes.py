"""Ring, attempts, confidence, note, timeline, status and summary: what they say about a state."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from textual.content import Content

from tests.console.panes.stage import Stage, rows_of, text_of_pane
from tests.console.panes.stories import (
    NOTE,
    PYTEST,
    Story,
    answered,
    backing_off,
    streaming,
    tripped,
    troubled,
)
from tests.console.waiting import until
from tui_agent.console.panes import (
    AttemptsPane,
    ConfidencePane,
    ConversationPane,
    IncidentStrip,
    NotePane,
    RingPane,
    StatusLine,
    TimelinePane,
    TrendsPane,
)
from tui_agent.core import events
from tui_agent.core.fold import apply
from tui_agent.core.projections.conversation import OutcomeEntry
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.cognition import CognitiveState
from tui_agent.core.state import RunState
from tui_agent.frontend.lines.glyphs import OUTCOMES, SPARKS, pips
from tui_agent.frontend.lines.incident import LOUD
from tui_agent.frontend.lines.mode import mode_of
from tui_agent.frontend.lines.outlook import confidence_role
from tui_agent.frontend.lines.styled import Span, clip, fit, fit_middle, justified, text_of, width_of
from tui_agent.headline import headline
from tui_agent.quantities import compact, dollars, seconds


async def text_at(kind: type, story: Story, size: tuple[int, int] = (64, 12)) -> str:
    async with Stage(kind).run_test(size=size) as pilot:
        app: Any = pilot.app
        app.show(story.state, story.now)
        await pilot.pause()
        pane = app.query_one(kind)
        if isinstance(pane, IncidentStrip):  # its height follows from what it shows
            await until(pilot, lambda: pane.content_region.height == len(pane.lines))
        return text_of_pane(pane)


# --- the ring ------------------------------------------------------------------------------------------------


async def test_the_ring_shows_a_failure_with_kind_and_age_and_what_four_more_lead_to() -> None:
    rows = (await text_at(RingPane, troubled(), (70, 7))).rstrip().split("\n")
    assert rows[0].startswith("1 ●   tool failed  grep: exit code 1: no match")
    assert "1 step" in rows[0]
    assert [row.strip() for row in rows[1:]] == ["○ ○ ○ ○  4 more like it: you are asked"]


async def test_an_empty_ring_is_one_line() -> None:
    assert (await text_at(RingPane, Story(), (34, 12))).strip() == "○ ○ ○ ○ ○ nothing failed"
    recovered = Story().run("Go.")
    for worked in (False, True):
        recovered.ask_model()
        (call,) = recovered.reply("", ("bash", {"command": "make"}))
        (recovered.succeed(call) if worked else recovered.fail(call, "exit code 2")).judge()
    assert (await text_at(RingPane, recovered, (34, 12))).strip() == "○ ○ ○ ○ ○ empty"


@pytest.mark.parametrize(
    ("last", "shared"),
    [
        (("bash", "make", "exit code 2"), ["same call, another error", "the same error", "the same error"]),
        (("bash", "ls y", "exit code 1: x"), ["same tool"] * 3),
        (("grep", "x", "no match"), ["another"] * 3),
    ],
)
async def test_each_slot_of_the_ring_says_what_it_shares_with_the_last(
    last: tuple[str, str, str], shared: list[str]
) -> None:
    story = Story().run("Go.")
    for tool, command, message in (*(("bash", *each) for each in FAILURES), last):
        story.ask_model()
        (call,) = story.reply("", (tool, {"command": command}))
        story.fail(call, message).judge()
    rows = (await text_at(RingPane, story, (76, 7))).split("\n")
    assert [row[6:].split("  ")[0] for row in rows[:3]] == shared
    assert rows[3].startswith("4 ● = " if shared[1] == "the same error" else "4 ●   ")
    assert f"{last[0]}: {last[2]}" in rows[3]


FAILURES = (("make", "exit code 9"), ("make", "exit code 2"), ("ls x", "exit code 2"))


async def test_identical_failures_carry_the_same_mark_and_a_different_one_does_not() -> None:
    story = Story().run("Go.")
    for message in ("exit code 9", "exit code 2", "exit code 2"):
        story.ask_model()
        (call,) = story.reply("", ("bash", {"command": message}))
        story.fail(call, message).judge()
    rows = (await text_at(RingPane, story, (70, 7))).split("\n")
    assert [row[:5] for row in rows[:3]] == ["1 ●  ", "2 ● =", "3 ● ="]


async def test_the_ring_flashes_when_it_trips_and_stays_marked() -> None:
    story = tripped()
    async with Stage(RingPane).run_test(size=(60, 8)) as pilot:
        app: Any = pilot.app
        pane = app.query_one(RingPane)
        app.show(Story().state, 0.0)
        assert not pane.has_class("-tripped")
        app.show(story.state, story.now)
        assert pane.has_class("-tripped")
        assert pane.has_class("-flash")
        for _ in range(8):
            pane._flash_on()
        assert not pane.has_class("-flash")
        assert pane.has_class("-tripped")
        assert "tripped: 5 identical" in str(pane.border_subtitle)
        app.show(Story().run("Again.").state, 0.0)
        assert not pane.has_class("-tripped")


async def test_without_animations_the_ring_does_not_flash() -> None:
    story = tripped()
    async with Stage(RingPane).run_test(size=(60, 8)) as pilot:
        app: Any = pilot.app
        app.animation_level = "none"
        app.show(story.state, story.now)
        assert not app.query_one(RingPane).has_class("-flash")
        assert app.query_one(RingPane).has_class("-tripped")


async def test_a_low_ring_shows_the_newest_failure_and_says_how_many_on_its_edge() -> None:
    async with Stage(RingPane).run_test(size=(60, 3)) as pilot:
        app: Any = pilot.app
        app.show(tripped().state, 0.0)
        await pilot.pause()
        pane = app.query_one(RingPane)
        assert text_of_pane(pane).startswith("5 ● = bash: exit code 2")
        assert str(pane.border_subtitle).startswith("■ tripped: 5 identical")


# --- attempts ------------------------------------------------------------------------------------------------


async def test_attempts_are_listed_newest_first_with_pips_limits_and_blocks() -> None:
    rows = (await text_at(AttemptsPane, troubled(), (70, 10))).split("\n")
    assert rows[0].startswith("●○○ grep statistics_helpers in .")
    assert rows[0].endswith("1/3")
    assert rows[2].startswith("●●● bash python -m pytest -q tests")
    assert rows[2].endswith("3/3 · may run again"), "the edit since has ended the block"
    assert rows[3].strip() == "ModuleNotFoundError: No module named 'statistics_helpers'"
    story = Story().run("Go.")
    for _ in range(3):
        story.ask_model()
        (call,) = story.reply("", ("read_file", {"path": "a.txt"}))
        story.fail(call, "no such file").judge()
    assert (await text_at(AttemptsPane, story, (70, 10))).split("\n")[0].endswith("⊘ blocked")


async def test_the_same_failure_after_changes_is_shown_with_their_number() -> None:
    story = Story().run("Go.")
    for number in range(4):
        story.ask_model()
        edit, test = story.reply("", ("write_file", {"path": f"{number}.py"}), ("bash", {"command": "make"}))
        story.succeed(edit, "written", changed=(f"{number}.py",)).fail(test, "exit code 2: broken").judge()
    assert (await text_at(AttemptsPane, story, (70, 10))).split("\n")[0].endswith("the same after 3 changes")
    assert (await text_at(AttemptsPane, story, (40, 10))).split("\n")[0].endswith(" 3 changes")


async def test_attempts_of_one_tool_show_what_tells_them_apart() -> None:
    story = Story().run("Go.")
    legs = [{"date": "2024-05-27", "from": "IAH", "to": "DEN"}] * 4
    for payment in ("gift_card_1", "gift_card_2"):
        story.ask_model()
        (call,) = story.reply("", ("book", {"cabin": "business", "legs": legs, "payment": payment}))
        story.fail(call, "not enough").judge()
    rows = (await text_at(AttemptsPane, story, (50, 6))).split("\n")
    assert [row.split()[2] for row in rows[:3:2]] == ["payment=gift_card_2", "payment=gift_card_1"]


async def test_a_call_that_the_operator_lets_run_once_more_is_not_shown_as_blocked() -> None:
    story = troubled()
    asked = next(entry for entry in story.state.recovery.of(AttemptLedger).newest_first() if entry.blocked)
    raised = events.EscalationRaised(
        id="e1",
        question="What now?",
        source="attempts",
        tool=asked.tool,
        input=dict(asked.input),
        key=asked.key,
    )
    story.add(raised)
    story.add(events.EscalationAnswered(id="e1", choice="retry", tool=asked.tool, input=dict(asked.input)))
    rows = (await text_at(AttemptsPane, story, (70, 10))).split("\n")
    assert rows[2].endswith("3/3 · 1 more try")
    assert "blocked" not in "".join(rows)


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ({"choice": "retry"}, "» retry once"),
        ({"choice": "retry", "text": "with care"}, "» retry once: with care"),
        ({"choice": "stop"}, "» stop the run"),
        ({"choice": "skip"}, "» skip it"),
        ({"choice": "answer", "text": "use 8080"}, "» use 8080"),
        (
            {"choice": "edit", "tool": "bash", "input": {"command": "make"}},
            "» edited the call and retried it: bash make",
        ),
    ],
)
async def test_an_answer_stands_in_the_conversation_in_words(answer: dict[str, Any], shown: str) -> None:
    story = Story().run("Go.")
    story.add(events.EscalationRaised(id="q", question="What now?", source="attempts", tool="bash"))
    story.add(events.EscalationAnswered.model_validate({"id": "q", **answer}))
    rows = (await text_at(ConversationPane, story, (80, 20))).split("\n")
    assert shown in [row.strip() for row in rows]


async def test_a_guess_that_another_call_made_good_does_not_come_back_when_its_recovery_has_faded() -> None:
    story = Story().run("Go.")
    for path in ("shop/carts.py", "shop/cart.py", *(f"other/{number}.py" for number in range(6))):
        story.ask_model()
        (call,) = story.reply("", ("read_file", {"path": path}))
        hint = "There is no file 'shop/carts.py' in the workspace. Did you mean 'shop/cart.py'?"
        (story.fail(call, hint) if path == "shop/carts.py" else story.succeed(call, "text")).judge()
    assert [entry.count for entry in story.state.recovery.of(AttemptLedger).newest_first()] == [1]
    assert "no call has failed" in await text_at(AttemptsPane, story, (70, 8))


async def test_a_guess_that_was_never_needed_again_leaves_with_the_end_of_the_run() -> None:
    story = Story().run("Go.")
    story.ask_model()
    (call,) = story.reply("", ("read_file", {"path": "docs/guess.md"}))
    story.fail(call, "There is no file 'docs/guess.md' in the workspace.").judge()
    for number in range(8):
        story.ask_model()
        (call,) = story.reply("", ("read_file", {"path": f"{number}.py"}))
        story.succeed(call, "text").judge()
    async with Stage(AttemptsPane).run_test(size=(70, 8)) as pilot:
        app: Any = pilot.app
        app.show(story.state, story.now)
        await pilot.pause()
        pane = app.query_one(AttemptsPane)
        assert "●○○" in text_of_pane(pane)
        story.add(events.RunFinished(outcome=events.Outcome.ANSWERED, answer="Done."))
        assert not story.state.metrics.incidents.open
        app.show(story.state, story.now)
        await pilot.pause()
        assert "●○○" not in text_of_pane(pane)


async def test_denials_are_counted_apart_from_failures() -> None:
    story = Story().run("Go.")
    story.ask_model()
    (call,) = story.reply("", ("bash", {"command": "rm -rf build"}))
    story.refuse(call, "denied", "No.").judge()
    assert "⊘ denied ×1" in await text_at(AttemptsPane, story)


async def test_a_policy_that_does_not_judge_attempts_says_so() -> None:
    async with Stage(AttemptsPane).run_test(size=(60, 8)) as pilot:
        app: Any = pilot.app
        story = tripped()
        app.show(story.state, story.now)
        assert "not used by policy" in str(app.query_one(AttemptsPane).border_subtitle)


async def test_a_call_that_was_recovered_is_green_then_faded_then_gone() -> None:
    story = answered()
    async with Stage(AttemptsPane).run_test(size=(64, 12)) as pilot:
        app: Any = pilot.app
        pane = app.query_one(AttemptsPane)
        styles = []
        for _ in range(5):
            app.show(story.state, story.now)
            await pilot.pause()
            styles.append((text_of_pane(pane).strip(), pane.lines[0][0].style))
            story.ask_model()
            story.reply("Go on.")
            story.judge()
    words = "✓ bash pytest -q                      worked after 1 failure"
    assert styles[:2] == [(words, "ok bold"), (words, "muted bold")]
    assert styles[-1][0].startswith("○ no call has failed")
    assert styles[-1][1] == "muted"


def walking() -> Story:
    """A run under the policy that goes by FunnelCanary's confidence."""
    return Story("funnelcanary").run("Go.")


# --- confidence ----------------------------------------------------------------------------------------------


def stalled(steps: int) -> Story:
    """A run whose first steps all fail, each in its own way."""
    story = Story().run("Go.")
    for number in range(steps):
        story.ask_model()
        (call,) = story.reply("", ("read_file", {"path": f"{number}"}))
        story.fail(call, f"error {'abcdefghij'[number]}").judge()
    return story


def repeating(*errors: str, changed: bool = False) -> Story:
    """Steps in which one call fails with these errors; `changed`: a file between them."""
    story = Story().run("Go.")
    for left, error in zip(range(len(errors) - 1, -1, -1), errors, strict=True):
        story.ask_model()
        (call,) = story.reply("", ("bash", {"command": "make"}))
        story.fail(call, error).judge()
        if changed and left:
            story.ask_model()
            (call,) = story.reply("", ("edit_file", {"path": "Makefile"}))
            story.succeed(call, "done", changed=("Makefile",)).judge()
    return story


@pytest.mark.parametrize(
    ("story", "figure", "grounds"),
    [
        (lambda: Story().run("Go."), "0.30 →", []),
        (
            troubled,
            "0.20 ↗",
            [
                "- grep failed: exit code 1: no match",
                "- bash: same error 3 times: ModuleNotFoundError: No module named 'statistics_helpers'",
                "+ 2 of 5 steps worked",
            ],
        ),
        (
            lambda: repeating("exit code 2", "exit code 2"),
            "0.10 ↘",
            [
                "- 2 steps in a row without a success; at 4 another way is asked for",
                "- bash: same error 2 times, nothing changed since: exit code 2",
            ],
        ),
        (
            lambda: repeating("exit code 2", "exit code 2", changed=True),
            "0.20 ↘",
            ["- bash: same error 2 times, after 1 change: exit code 2", "+ 1 of 3 steps worked"],
        ),
        (
            lambda: stalled(9),
            "0.00 →",
            [
                "- 9 steps in a row without a success",
                "- read_file failed: error i",
                "- read_file failed: error h",
                "- 7 other failures open",
                r"- no step of 9 has worked: about \d in 100 next steps do then, in [\d,]+ recorded cases like this",
            ],
        ),
        (backing_off, "0.20 ↘", ["- the model does not answer: rate limit, 2 failed calls in a row"]),
        (
            answered,
            "0.40 ↗",
            [
                "✓ proven: tests ran: pytest -q: 7 passed in 0.12s",
                "+ 2 of 4 steps worked",
                "+ 1 failure of 1 recovered",
            ],
        ),
        (tripped, "0.00 →", ["- bash: same error 5 times: exit code 2: make: .*"]),
    ],
)
async def test_the_gauge_stands_above_what_speaks_against_and_for(
    story: Callable[[], Story], figure: str, grounds: list[str]
) -> None:
    rows = (await text_at(ConfidencePane, story(), (130, 16))).split("\n")
    assert rows[0].startswith(figure)
    assert set(rows[0].removeprefix(figure).rsplit(None, 1)[0]) <= set(" ━─┼╋")
    said = [row for row in rows if row.startswith(("- ", "+ ", "✓ ", "? "))]
    assert len(said) == len(grounds)
    for row, expected in zip(said, grounds, strict=True):
        assert row == expected or re.fullmatch(expected, row)


def test_a_success_whose_outcome_was_known_does_not_raise_the_confidence() -> None:
    def looked(*paths: str) -> float:
        story = Story().run("Go.")
        for path in paths:
            story.ask_model()
            (call,) = story.reply("", ("read_file", {"path": path}))
            story.succeed(call, f"text of {path}").judge()
        return story.state.recovery.of(CognitiveState).confidence

    assert (looked("a"), looked("a", "a", "a"), looked("a", "b")) == (0.4, 0.4, 0.5)


async def test_at_the_end_it_is_said_what_no_result_shows() -> None:
    story = Story().run("Go.")
    for name, arguments, facts in (
        ("bash", {"command": "pytest -q"}, {}),
        ("edit_file", {"path": "a.py"}, {"changed": ("a.py",)}),
    ):
        story.ask_model()
        (call,) = story.reply("", (name, arguments))
        story.succeed(call, "3 passed in 0.1s", **facts).judge()
    rows = (await text_at(ConfidencePane, story, (90, 12))).split("\n")
    assert not any("proven" in row for row in rows)
    story.add(events.RunFinished(outcome=events.Outcome.ANSWERED, answer="Done."))
    rows = (await text_at(ConfidencePane, story, (90, 12))).split("\n")
    assert "? not proven: a.py was changed after it" in rows


async def test_a_fault_of_the_model_lowers_the_confidence_within_its_step() -> None:
    story = Story().run("Go.")
    for path in ("a", "b"):
        story.ask_model()
        (call,) = story.reply("", ("read_file", {"path": path}))
        story.succeed(call, "text").judge()
    assert (await text_at(ConfidencePane, story, (64, 12))).startswith("0.50 ↗")
    story.ask_model()
    fault = events.Fault(kind=events.FaultKind.RATE_LIMIT, message="slow down")
    story.add(events.ModelFaulted(fault=fault, action="retry", model="m", iteration=story.iteration))
    assert (await text_at(ConfidencePane, story, (64, 12))).startswith("0.40 ↘")


@pytest.mark.parametrize("width", [34, 40, 64, 100])
@pytest.mark.parametrize("policy", ["funnelcanary", "gigi", "combined"])
async def test_the_marks_of_the_gauge_stand_above_their_numbers(policy: str, width: int) -> None:
    story = Story(policy).run("Go.")
    assert "\nup with each step that works" in await text_at(ConfidencePane, story, (width, 12))
    story.ask_model()
    (call,) = story.reply("", ("read_file", {"path": "a"}))
    story.succeed(call, "text").judge()
    rows = (await text_at(ConfidencePane, story, (width, 12))).split("\n")
    for label in (".3", ".7"):
        at = rows[1].index(label)
        assert set(rows[0][at - 1 : at + 2]) & set("┼╋")
    words = {"funnelcanary": ("may give up", "answer due")}.get(policy, ("low", "high"))
    assert all(word in rows[1] for word in words) or width < 64


async def test_a_tripped_breaker_is_listed() -> None:
    story = Story().run("Go.")
    story.add(events.BreakerSet(tool="bash", open=True))
    assert "⊘ bash breaker open" in await text_at(ConfidencePane, story)


# --- the note ------------------------------------------------------------------------------------------------


async def test_the_note_is_shown_word_for_word_before_it_is_sent_and_dimmed_after() -> None:
    story = troubled()
    text = await text_at(NotePane, story, (110, 20))
    assert text.startswith("→ the model reads this next")
    assert NOTE in text
    story.ask_model(NOTE)
    text = await text_at(NotePane, story, (110, 20))
    assert text.startswith("✓ the model has read this")
    assert NOTE in text


@pytest.mark.parametrize(
    ("text", "edited", "says"),
    [
        ("Do it.", True, "✎ edited by you"),
        (None, True, "✎ dropped by you"),
        (None, False, "○ nothing pending"),
    ],
)
async def test_an_edited_or_dropped_note_says_by_whom(text: str | None, edited: bool, says: str) -> None:
    story = Story().run("Go.")
    story.add(events.NotePrepared(text=text, edited=edited))
    assert (await text_at(NotePane, story)).startswith(says)


# --- the timeline --------------------------------------------------------------------------------------------


async def test_the_timeline_shows_iteration_time_level_reason_and_who_said_it() -> None:
    text = await text_at(TimelinePane, troubled(), (110, 20))
    assert "  2   +0:05 ✗ failure   bash: ModuleNotFoundError: No module named 'statistics_helpers'" in text
    (escalated,) = (row for row in text.split("\n") if "▲ escalate  bash has failed 3 times" in row)
    assert escalated.split()[-1].startswith("attempts")
    assert "⊘ refused" in text
    assert text.rstrip().split("\n")[-1].startswith("  6")


async def test_the_timeline_counts_within_a_run_and_not_while_nobody_was_there() -> None:
    story = Story().run("Go.").ask_model()
    story.add(events.Notice(text="before the night"), 5)
    story.add(events.SessionResumed(), 9 * 3_600)
    story.add(events.Notice(text="in the morning"), 2)
    story.add(events.RunFinished(outcome=events.Outcome.ANSWERED, answer="ok"))
    story.add(events.Notice(text="between runs"), 3_600)
    between = time.strftime("%H:%M", time.localtime(story.now))
    story.run("And this.").add(events.Notice(text="early in the next"), 61)
    rows = (await text_at(TimelinePane, story, (110, 20))).split("\n")
    began = time.strftime("%H:%M", time.localtime(story.state.metrics.started_at))
    for text, when in (
        ("before the night", "+0:05"),
        ("in the morning", "+0:07"),
        ("between runs", between),
        ("run 2", began),
        ("early in the next", "+1:01"),
    ):
        assert when in next(row for row in rows if text in row).split()


async def test_the_timeline_draws_only_new_lines_and_follows_the_newest() -> None:
    story = Story(max_iterations=9_999).run("Go.")
    for _ in range(300):
        story.ask_model()
        (call,) = story.reply("", ("bash", {"command": "x"}))
        story.succeed(call, "ok").judge()
        story.add(events.Notice(text=f"notice {story.iteration}"))
    async with Stage(TimelinePane).run_test(size=(70, 12)) as pilot:
        app: Any = pilot.app
        app.show(story.state, story.now)
        await pilot.pause()
        pane = app.query_one(TimelinePane)
        assert "notice 300" in text_of_pane(pane)
        assert len(pane._strips) < 40
        pane.focus()
        await pilot.press("home")
        assert "run 1, policy combined" in text_of_pane(pane)
        story.add(events.Notice(text="the latest"))
        app.show(story.state, story.now)
        await pilot.pause()
        assert "the latest" not in text_of_pane(pane)
        await pilot.press("end")
        assert "the latest" in text_of_pane(pane)


async def test_a_line_of_the_timeline_can_be_chosen_by_key_and_by_click() -> None:
    chosen: list[int] = []

    class Listening(Stage):
        def on_timeline_pane_selected(self, event: TimelinePane.Selected) -> None:
            chosen.append(event.seq)

    story = troubled()
    async with Listening(TimelinePane).run_test(size=(90, 20)) as pilot:
        app: Any = pilot.app
        app.show(story.state, story.now)
        await pilot.pause()
        pane = app.query_one(TimelinePane)
        pane.focus()
        await pilot.press("up", "up", "enter")
        await pilot.click(TimelinePane, offset=(10, 1))
        await pilot.pause()
    lines = story.state.timeline.lines
    assert chosen == [lines[len(lines) - 2].seq, lines[0].seq]


async def test_the_line_under_the_cursor_opens_to_its_whole_text() -> None:
    story = Story().run("Go.")
    story.add(events.Notice(text="a long remark " * 12 + "with an end"))
    async with Stage(TimelinePane).run_test(size=(50, 14)) as pilot:
        app: Any = pilot.app
        app.show(story.state, story.now)
        await pilot.pause()
        pane = app.query_one(TimelinePane)
        assert "with an end" not in text_of_pane(pane)
        pane.focus()
        await pilot.press("up")
        assert "with an end" in text_of_pane(pane)


async def test_a_replay_that_goes_back_shows_fewer_lines() -> None:
    story = troubled()
    async with Stage(TimelinePane).run_test(size=(90, 30)) as pilot:
        app: Any = pilot.app
        app.show(story.state, story.now)
        await pilot.pause()
        app.show(Story().run("Other.").state, 0.0)
        await pilot.pause()
        rows = [row for row in rows_of(app.query_one(TimelinePane)) if row.strip()]
        assert len(rows) == 1


# --- status and summary --------------------------------------------------------------------------------------


async def test_the_status_line_names_mode_model_policy_iteration_tokens_cost_and_time() -> None:
    text = await text_at(StatusLine, troubled(), (120, 3))
    for part in (
        "▶ AUTO",
        "gpt-5-mini",
        "combined",
        "step 6 of 50",
        "19.7k tok",
        "$0.0126",
        "/min",
        "32 s",
        "tools",
    ):
        assert part in text


async def test_the_status_line_says_when_a_reply_that_has_begun_pauses() -> None:
    story = streaming()
    assert "no text" not in await text_at(StatusLine, story, (120, 3))
    story.now += 8
    for width in (60, 80, 120):
        assert "model, no text for 8 s" in await text_at(StatusLine, story, (width, 3))
    story.add(events.ReplyDelta(text="And on."))
    assert "no text" not in await text_at(StatusLine, story, (120, 3))


async def test_the_status_line_says_that_a_call_waits_for_an_answer_to_its_server() -> None:
    story = troubled()
    story.add(events.ServerAsked(id="t", server="bench", purpose="trust", message="Start it?"))
    assert mode_of(story.state) == "AUTO", "the run goes on without a server that waits to be trusted"
    story.add(events.ServerAsked(id="s", server="bench", purpose="elicitation", message="Which colour?"))
    text = await text_at(StatusLine, story, (60, 3))
    assert "WAITING" in text
    assert "? server" in text
    story.add(events.ServerAnswered(id="s", server="bench", decision="accept"))
    assert mode_of(story.state) == "AUTO"


async def test_the_status_line_gives_up_detail_before_fields_and_the_light_ones_first() -> None:
    story = troubled().add(events.ModelWindowLearned(model="gpt-5-mini", tokens=10_000))
    wide = await text_at(StatusLine, story, (180, 3))
    narrow = await text_at(StatusLine, story, (60, 3))
    assert "ctx ▰" in wide
    for part in ("▶ AUTO", "6/50", "gpt-5-mini", "ctx ", "$0.0126", "33 s"):
        assert part in narrow
    for part in ("step 6 of 50", "19.7k tok", "/min", "▰"):
        assert part not in narrow


async def test_the_meter_says_how_much_of_the_window_the_newest_request_took() -> None:
    story = Story().run("Look.").add(events.ModelWindowLearned(model="gpt-5-mini", tokens=200_000))
    async with Stage(StatusLine).run_test(size=(180, 3)) as pilot:
        app: Any = pilot.app
        for prompt, said in (
            (None, ""),
            (11_000, "ctx ▱▱▱▱▱ 11k of 200k"),
            (100_000, "ctx ▰▰▱▱▱ 100k of 200k"),
            (250_000, "ctx ▰▰▰▰▰ 250k of 200k"),
        ):
            metrics = replace(story.state.metrics, last_prompt_tokens=prompt)
            app.show(replace(story.state, metrics=metrics), story.now)
            await pilot.pause()
            shown = text_of_pane(app.query_one(StatusLine))
            assert said in shown
            assert ("ctx" in shown) is bool(said)


async def test_an_idle_console_is_ready_and_names_the_model_of_the_next_run() -> None:
    app = Stage(StatusLine)
    async with app.run_test():
        line = app.query_one(StatusLine)
        line.next_model, line.next_policy = "openai/gpt-5", "forge"
        text = "".join(span.text for span in line.draw(RunState(), 0.0, 100)[0])
    assert "READY" in text
    assert "openai/gpt-5" in text
    assert "forge" in text
    assert "AUTO" not in text


async def test_that_nothing_is_asked_is_said_before_the_run_and_in_it() -> None:
    app = Stage(StatusLine)
    async with app.run_test():
        line = app.query_one(StatusLine)

        def text(state: RunState, width: int = 100) -> str:
            return "".join(span.text for span in line.draw(state, 0.0, width)[0])

        assert "approve" not in text(RunState())
        line.next_approve = "all"
        assert "approve all" in text(RunState())
        story = Story().run("Go.")
        assert "approve" not in text(story.state), "the run asks"
        story.add(events.SettingChanged(setting="approve", value="all"))
        assert "approve all" in text(story.state)
        assert "approve all" in text(story.ask_model().state, 44), "other fields go before it"


async def test_what_goes_on_between_steps_is_said_unless_a_card_waits_or_nothing_runs() -> None:
    story = Story().run("Go.").add(events.ModeChanged(mode=events.Mode.STEP))
    app = Stage(StatusLine)
    async with app.run_test():
        line = app.query_one(StatusLine)

        def text(width: int = 100) -> str:
            return "".join(span.text for span in line.draw(story.state, story.state.at, width)[0])

        assert "STEP" in text()
        assert "starting the model" in text()
        assert "starting" in text(30), "nothing else says it"
        line.held = True
        assert "starting the model" not in text()
        line.held, line.still, line.left_open = False, True, True
        assert "starting the model" not in text()
        assert "PAUSED" in text()


async def test_run_and_session_are_told_apart_and_waiting_for_the_operator_is_counted() -> None:
    story = Story().run("First.").ask_model()
    story.reply("Yes.")
    story.add(events.RunFinished(outcome=events.Outcome.ANSWERED)).run("Second.").ask_model()
    story.reply("Go.")
    story.add(events.EscalationRaised(id="q", question="?", source="attempts"))
    app = Stage(StatusLine)
    async with app.run_test():
        (line,) = app.query_one(StatusLine).draw(story.state, story.state.at + 90.0, 250)
        text = "".join(span.text for span in line)
    assert "3.3k tok (6.6k in all)" in text
    assert "$0.0021 ($0.0042 in all)" in text
    assert "waited 1m 30s" in text
    story.add(events.EscalationAnswered(id="q", choice="retry"))
    assert story.state.metrics.waited(story.state.at + 60.0) == story.state.metrics.waited(story.state.at)


async def test_an_unknown_cost_is_not_zero() -> None:
    assert "cost ?" in await text_at(StatusLine, tripped(), (120, 3))
    story = Story(model="openai/unpriced").run("First.")
    for task in ("Second.", "Third."):
        story.ask_model()
        story.reply("Yes.", cost=None)
        story.add(events.RunFinished(outcome=events.Outcome.ANSWERED)).run(task)
    story.ask_model()
    story.reply("Yes.", cost=None)
    assert " · cost ? · " in await text_at(StatusLine, story, (200, 3))


async def test_the_time_of_a_run_that_has_ended_is_that_of_its_closing_line() -> None:
    story = answered()
    outcome = story.state.conversation.entries[-1]
    assert isinstance(outcome, OutcomeEntry)
    assert f" {seconds(outcome.duration)}" in await text_at(StatusLine, story, (180, 3))


async def test_a_wait_stays_on_a_narrow_status_line() -> None:
    assert "≈ retry in 4.9 s" in await text_at(StatusLine, backing_off(), (50, 3))


def test_the_mode_is_waiting_while_the_operator_is_asked_and_done_at_the_end() -> None:
    story = Story().run("Go.")
    assert mode_of(story.state) == "AUTO"
    story.add(events.ModeChanged(mode=events.Mode.STEP))
    assert mode_of(story.state) == "STEP"
    story.add(events.EscalationRaised(id="q", question="?", source="attempts"))
    assert mode_of(story.state) == "WAITING"
    assert mode_of(answered().state) == "DONE"


async def test_the_strip_tells_the_open_incident_as_one_story() -> None:
    story = Story().run("Go.")
    for number in range(3):
        story.ask_model(NOTE if number else None)
        (call,) = story.reply("", ("bash", {"command": "python3 -m unittest"}))
        story.fail(call, PYTEST).judge(NOTE if number < 2 else None)
    rows = (await text_at(IncidentStrip, story, (150, 40))).split("\n")
    assert rows[0].startswith(
        "✗ bash python3 -m unittest  ModuleNotFoundError: No module named 'statistics_helpers'"
    )
    assert rows[0].endswith("the same error 3 times")
    assert rows[1] == "  step 1 ✗ note──step 2 ✗ note──step 3 ✗"
    assert rows[2].startswith("  note ✓ › held back › other way › [YOU ARE ASKED] › partial › stop")
    assert rows[2].endswith("if it comes again: the call is not run again")


async def test_a_model_that_answers_again_fails_no_more_before_its_calls_have_run() -> None:
    story = Story().run("Go.")
    story.ask_model()
    fault = events.Fault(kind=events.FaultKind.RATE_LIMIT, message="slow down")
    story.add(events.ModelFaulted(fault=fault, action="retry", model="m", iteration=1, rule="model.retry"))
    assert (await text_at(IncidentStrip, story, (150, 40))).startswith("✗ the model call  slow down")
    story.ask_model(attempt=2)
    (call,) = story.reply("", ("bash", {"command": "sleep 99"}))
    story.start(call)
    assert (await text_at(IncidentStrip, story, (150, 40))).startswith("✓ nothing fails now")


@pytest.mark.parametrize(
    ("width", "often"),
    [
        (150, "the same error 2 times · 1 other failure open"),
        (123, "the same error 2 times · +1 other"),
        (102, "2× · +1 other"),
    ],
)
async def test_how_often_it_failed_takes_no_room_from_what_failed(width: int, often: str) -> None:
    story = Story().run("Go.")
    for command in ("make", "python3 -m unittest", "python3 -m unittest"):
        story.ask_model()
        (call,) = story.reply("", ("bash", {"command": command}))
        story.fail(call, PYTEST).judge()
    first = (await text_at(IncidentStrip, story, (width, 40))).split("\n")[0]
    assert first.startswith(
        "✗ bash python3 -m unittest  ModuleNotFoundError: No module named 'statistics_helpers'  "
    )
    assert first.endswith(f"  {often}")


async def test_the_ladder_has_the_rungs_of_the_policy_alone() -> None:
    story = Story("funnelcanary").run("Go.")
    story.ask_model()
    (call,) = story.reply("", ("bash", {"command": "python3 -m unittest"}))
    story.fail(call, PYTEST)
    rows = (await text_at(IncidentStrip, story, (150, 40))).split("\n")
    assert rows[2].strip() == "other way › partial"


def failing(*commands: str) -> Story:
    """Commands that failed in the last step, after a step for each of them alone."""
    story = Story().run("Go.")
    for tried in [*([command] for command in commands), commands]:
        story.ask_model()
        for call in story.reply("", *(("bash", {"command": command}) for command in tried)):
            story.fail(call, PYTEST)
        story.judge()
    return story


@pytest.mark.parametrize(
    ("width", "ladder"),
    [
        (130, "[ERROR SHOWN] › note › held back › other way › you are asked › partial › stop"),
        (78, "[ERROR SHOWN]"),
        (60, "[ERROR SHOWN]"),
        (50, "[ERROR SHOWN]"),
        (40, "[ERROR SHOWN]"),
    ],
)
async def test_a_narrow_ladder_keeps_its_rungs_whole(width: int, ladder: str) -> None:
    said = {
        130: "if it fails again: ",
        78: "if it fails again: ",
        60: "if it fails again: ",
        50: "next: ",
        40: "next: note",
    }[width]
    last = (await text_at(IncidentStrip, repeating("exit code 2"), (width, 24))).split("\n")[-1]
    assert last.split("  ")[1].strip() == ladder
    assert last.endswith(said if width == 40 else f"{said}the model gets a note")


async def test_the_strip_says_that_a_call_waits_for_the_operator() -> None:
    story = failing("make")
    story.add(events.EscalationRaised(id="e", question="?", source="attempts"))
    rows = (await text_at(IncidentStrip, story, (150, 40))).split("\n")
    assert rows[1].endswith("──▶ you")
    assert "[YOU ARE ASKED]" in rows[2]
    assert len((await text_at(IncidentStrip, story, (80, 24))).split("\n")) == 1


async def test_the_strip_is_about_the_call_that_the_operator_is_asked_about() -> None:
    story = failing("make", "make test")
    key = next(iter(story.state.metrics.incidents.open))
    story.add(events.EscalationRaised(id="e", question="?", source="attempts", key=key))
    rows = (await text_at(IncidentStrip, story, (150, 40))).split("\n")
    assert rows[0].startswith("✗ bash make  ")
    assert rows[1].endswith("──▶ you")


async def test_a_question_about_something_else_is_no_part_of_the_story() -> None:
    asked: tuple[events.Event, ...] = (
        events.EscalationRaised(id="e", question="Which one?", source="ask_operator"),
        events.ApprovalAsked(id="a", call_id="c9", tool="write_file", input={"path": "Makefile"}),
    )
    for event in asked:
        rows = (await text_at(IncidentStrip, failing("make").add(event), (150, 40))).split("\n")
        assert rows[1] == "  step 1 ✗──step 2 ✗"
        assert rows[2].startswith("  [ERROR SHOWN] › note › held back › other way › you are asked")
        assert "if it fails again: " in rows[2]


async def test_a_run_that_goes_in_circles_without_a_failure_is_not_well() -> None:
    story = Story().run("Go.")
    for _ in range(4):
        story.ask_model()
        (call,) = story.reply("", ("bash", {"command": "cat README.md"}))
        story.succeed(call, "hi").judge()
    text = await text_at(IncidentStrip, story, (120, 40))
    assert text.strip() == "→ Stuck: the same call of bash with the same outcome again and again"
    story.add(events.EscalationRaised(id="e", question="Still stuck: the same call", source="stuck"))
    assert (await text_at(IncidentStrip, story, (120, 40))).strip() == "▲ Still stuck: the same call"


async def test_a_model_that_fails_has_a_ladder_of_its_own() -> None:
    story = backing_off().add(
        events.NotePrepared(text=NOTE)
    )  # about what failed before, and not about the model
    rows = (await text_at(IncidentStrip, story, (150, 40))).split("\n")
    assert rows[1:] == [
        "  step 1 ✗──✗",
        "  now the model is called again · if that does not help, you are asked",
    ]
    narrow = (await text_at(IncidentStrip, story, (60, 20))).split("\n")
    assert narrow[-1] == "  now: retry · next: you are asked"


async def test_replies_that_break_the_form_have_a_ladder_of_their_own() -> None:
    story = Story().run("Go.")
    story.ask_model()
    story.reply("I cannot.")
    failure = events.Failure(kind=events.FailureKind.NO_TOOL_CALL, message="The reply has no tool call.")
    story.add(events.ReplyRejected(failure=failure))
    rows = (await text_at(IncidentStrip, story, (150, 40))).split("\n")
    assert rows[2] == "  note › you are asked"


async def test_a_failure_that_the_run_went_on_without_is_a_problem_left_open() -> None:
    story = Story().run("Make the tests green.")
    story.ask_model()
    (call,) = story.reply("", ("read_file", {"path": "nosuch.py"}))
    story.fail(call, "There is no file 'nosuch.py'.").judge()
    heights = []
    for number in range(LOUD + 1):
        heights.append(len((await text_at(IncidentStrip, story, (120, 40))).split("\n")))
        story.ask_model()
        (call,) = story.reply("", ("bash", {"command": f"make {number}"}))
        story.succeed(call, "done").judge()
    assert heights == [3] * (LOUD + 1)
    text = await text_at(IncidentStrip, story, (120, 40))
    assert text.startswith("○ read_file nosuch.py still fails · 1 failure, open · confidence ")
    assert "\n" not in text


async def test_the_strip_is_one_calm_line_that_tells_nothing_of_what_is_over() -> None:
    story = Story().run("Make the tests green.")
    for outcome in ("fail", "succeed"):
        story.ask_model()
        (call,) = story.reply("", ("bash", {"command": "pytest -q"}))
        getattr(story, outcome)(call, PYTEST).judge()
    assert (await text_at(IncidentStrip, story, (120, 40))).strip() == (
        "✓ nothing fails now · 1 failure, recovered · confidence 0.30 ↗"
    )


@pytest.mark.parametrize("outcome", events.Outcome)
async def test_each_outcome_has_its_sign_in_the_timeline(outcome: events.Outcome) -> None:
    story = Story().run("Go.").add(events.RunFinished(outcome=outcome))
    assert f"{OUTCOMES[outcome].glyph} outcome" in await text_at(TimelinePane, story, (80, 8))


async def test_after_the_run_the_strip_says_how_it_ended() -> None:
    text = await text_at(IncidentStrip, answered(), (120, 40))
    assert text.strip() == "✓ answered at step 4 · 1 failure, recovered"
    story = backing_off().add(events.RunFinished(outcome=events.Outcome.MODEL_FAILED))
    text = await text_at(IncidentStrip, story, (120, 40))
    assert (
        text.strip()
        == "✗ the model could not be used at step 1 · 2 failures, both left open · the model call"
    )


async def test_the_strip_says_nothing_of_a_confidence_that_the_policy_does_not_go_by() -> None:
    story = Story("hpd").run("Go.")
    assert (await text_at(IncidentStrip, story, (120, 40))).strip() == "✓ nothing failed"


async def test_all_is_not_well_where_a_rule_speaks_although_nothing_failed() -> None:
    story = Story().run("Go.").ask_model()
    (call,) = story.reply("", ("bash", {"command": "make"}))
    story.succeed(call, "made").judge()
    said = events.VerdictReached(
        iteration=story.iteration, level=events.Level.GUIDE, detector="implicit", reason="no test ran"
    )
    text = await text_at(IncidentStrip, story.add(said), (120, 40))
    assert text.startswith("→ no test ran")
    assert "nothing fail" not in text


async def test_the_trends_have_a_row_for_each_figure() -> None:
    rows = (await text_at(TrendsPane, answered(), (70, 8))).split("\n")
    assert [row.split()[0] for row in rows if row] == ["failures", "confidence", "tokens", "latency", "cost"]


async def test_the_trends_and_the_confidence_name_one_value_and_a_step_without_a_call_keeps_it() -> None:
    story = answered()
    story.run("And now?").ask_model()
    story.reply("It is done.")
    story.judge()
    value = f"{story.state.recovery.of(CognitiveState).confidence:.2f}"
    rows = (await text_at(TrendsPane, story, (70, 8))).split("\n")
    assert [row.split()[-1] for row in rows if row.startswith("confidence")] == [value]
    assert (await text_at(ConfidencePane, story)).startswith(value)


async def test_the_trends_call_the_value_by_what_the_policy_goes_by() -> None:
    story = walking()
    story.ask_model()
    (call,) = story.reply("", ("bash", {"command": "make"}))
    story.succeed(call, "made").judge()
    rows = (await text_at(TrendsPane, story, (70, 8))).split("\n")
    assert [row.split()[0::2] for row in rows if row.startswith("confidence")] == [["confidence", "0.40"]]


async def test_the_trends_take_the_room_that_there_is_and_say_the_highest_value() -> None:
    rows = (await text_at(TrendsPane, answered(), (90, 16))).split("\n")
    at = next(place for place, row in enumerate(rows) if row.startswith("confidence"))
    assert [row.split() for row in rows[at - 1 : at + 2]] == [
        ["max", "0.40"],
        ["confidence", "▃▃▃", "▄▄▄", "▆▆▆", "▆▆▆", "0.40"],
        [],
    ]


@pytest.mark.parametrize("pane", [AttemptsPane, NotePane, TimelinePane, TrendsPane])
async def test_an_empty_pane_says_what_will_stand_in_it_where_there_is_room(pane: type) -> None:
    def rows(text: str) -> int:
        return len([row for row in text.split("\n") if row.strip("│╭╮╰╯─ ")])

    assert rows(await text_at(pane, Story(), (60, 12))) > 1
    assert rows(await text_at(pane, Story(), (20, 3))) == 1


# --- words and numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (PYTEST, "ModuleNotFoundError: No module named 'statistics_helpers'"),
        ("exit code 2: make: *** No rule", "exit code 2: make: *** No rule"),
        ("\n\n=====\n  something\n", "something"),
        ("Traceback (most recent call last):\n  File 'x'\nKeyError: 'a'\n\nexit code 1", "KeyError: 'a'"),
        ("building\ncc: fatal error: no input\nexit code 1", "cc: fatal error: no input"),
        ("\x1b[31mError: red\x1b[0m", "Error: red"),
        ("---\n***\n", "--- ***"),
        ("==== test session ====\n\n======== 1 failed in 0.2s ========", "1 failed in 0.2s"),
        ("The command failed with exit code 1.\nbatch 1\nbatch 2", "batch 2"),
        ("ERRORS:\n- E999 SyntaxError: unmatched ']'\n\nas it was", "E999 SyntaxError: unmatched ']'"),
        ("This call would not fit.\nthe closest line", "This call would not fit."),
        (
            "It failed with the following:\n\nbash: The command failed with exit code 7.\nsending\ncannot reach it",
            "cannot reach it",
        ),
    ],
)
def test_the_headline_of_a_message_is_the_line_that_says_what_is_wrong(message: str, expected: str) -> None:
    assert headline(message) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.0 s"),
        (0.02, "20 ms"),
        (0.4, "0.4 s"),
        (9.96, "10 s"),
        (59.6, "1m 00s"),
        (185, "3m 05s"),
        (3720, "1h 02m"),
        (-3, "0.0 s"),
    ],
)
def test_durations_read_as_people_say_them(value: float, text: str) -> None:
    assert seconds(value) == text


def test_money_is_told_as_exactly_as_it_matters() -> None:
    assert [dollars(cost) for cost in (0.0, 0.00421, 1.374)] == ["$0", "$0.0042", "$1.37"]


def test_counts_and_pips_are_short() -> None:
    assert [compact(number) for number in (0, 999, 1_000, 12_345, 128_000, 999_499, 999_500, 1_234_567)] == [
        "0",
        "999",
        "1.0k",
        "12.3k",
        "128k",
        "999k",
        "1.0M",
        "1.2M",
    ]
    assert [pips(count, 3) for count in (0, 1, 3, 5)] == ["○○○", "●○○", "●●●", "●●●+2"]


def test_cutting_marks_what_is_missing_and_counts_cells() -> None:
    assert fit("abcdef", 4) == "abc…"
    assert fit("日本語", 4) == "日…"
    assert fit_middle("python -m pytest tests/test_stats.py", 20) == "python -m py…tats.py"
    assert text_of(clip((Span("ab"), Span("cdef")), 4)) == "abc…"
    assert text_of(justified((Span("left part"),), (Span("r"),), 10)) == "left pa… r"
    assert width_of(justified((Span("日本語日本語"),), (Span("ok"),), 9)) == 9


@pytest.mark.parametrize("kind", [TimelinePane, NotePane, ConversationPane])
async def test_the_scrollbar_stands_where_the_content_is(kind: type) -> None:
    story = troubled()
    async with Stage(kind).run_test(size=(60, 8)) as pilot:
        app: Any = pilot.app
        app.show(story.state, story.now)
        await pilot.pause()
        await pilot.pause()
        pane = app.query_one(kind)
        assert pane.show_vertical_scrollbar
        assert pane.vertical_scrollbar.position == pane.scroll_y
        assert pane.vertical_scrollbar.window_virtual_size == pane.virtual_size.height


async def test_the_course_leaves_no_empty_rows_above_it() -> None:
    rows = (await text_at(ConfidencePane, repeating("exit code 2"), (64, 14))).rstrip().split("\n")
    assert [row[:8] for row in rows[3:]] == ["      ▂▂", "trend ██"]


async def test_a_low_ring_names_the_newest_failures() -> None:
    rows = (await text_at(RingPane, tripped(), (60, 5))).split("\n")
    assert [row[:5] for row in rows] == ["5 ● =", "4 ● =", "3 ● ="]
    empty = (await text_at(RingPane, Story(), (60, 5))).split("\n")
    assert empty[0].strip() == "○ ○ ○ ○ ○ nothing failed"


@pytest.mark.parametrize(
    ("width", "below"), [(40, "2 of 5 identical · ring.guide"), (30, "2 of 5 identical")]
)
async def test_what_has_no_room_on_the_edge_of_a_pane_is_left_out_whole(width: int, below: str) -> None:
    async with Stage(RingPane).run_test(size=(width, 8)) as pilot:
        pane = pilot.app.query_one(RingPane)
        pane.say_below("2 of 5 identical", rule="ring.guide")
        assert Content.from_markup(pane.border_subtitle).plain == below
        await pilot.resize_terminal(60, 8)
        await until(pilot, lambda: "ring.guide" in pane.border_subtitle)


async def test_a_call_that_could_not_be_read_is_recovered_by_the_next_proper_reply() -> None:
    story = Story().run("Go.")
    story.ask_model()
    (call,) = story.reply("", ("write_file", {"path": "a"}))
    story.fail(call, "no JSON", kind=events.FailureKind.INVALID_TOOL_CALL).judge()
    story.ask_model()
    (call,) = story.reply("", ("read_file", {"path": "a"}))
    story.succeed(call, "text").judge()
    rows = (await text_at(ConfidencePane, story, (64, 12))).split("\n")
    assert "+ 1 failure of 1 recovered" in [row.strip() for row in rows]
    assert not any("write_file" in row for row in rows)


async def test_a_value_has_one_colour_wherever_it_is_shown() -> None:
    story = troubled()
    value = story.state.recovery.of(CognitiveState).confidence
    for kind in (ConfidencePane, TrendsPane):
        async with Stage(kind).run_test(size=(90, 20)) as pilot:
            app: Any = pilot.app
            app.show(story.state, story.now)
            await pilot.pause()
            spans = [span for line in app.query_one(kind).lines for span in line]
            roles = [
                span.style for span in spans if span.text.strip() and set(span.text) <= set(f"{SPARKS} ")
            ]
            assert confidence_role(value) in roles
            assert {"", "error"} <= set(roles)


async def test_what_a_recording_does_not_count_is_unknown_and_not_nothing() -> None:
    story = Story().run("Go.")
    for number in range(3):
        story.ask_model()
        story.add(
            events.ReplyFinished(
                calls=(events.ToolCall(id=f"c{number}", name="bash", arguments="{}"),), model="m"
            )
        )
        story.add(events.ToolSucceeded(call_id=f"c{number}", tool="bash", content="ok"))
        story.judge()
    rows = (await text_at(TrendsPane, story, (70, 8))).split("\n")
    assert [row.split() for row in rows if row.startswith(("tokens", "latency"))] == [
        ["tokens", "unknown"],
        ["latency", "unknown"],
    ]
    assert " tok ? " in await text_at(StatusLine, story, (180, 3))


async def test_a_message_is_whole_where_there_are_rows_for_it() -> None:
    text = "There is no file 'shop/carts.py' in the workspace. Did you mean 'shop/cart.py'?"
    story = Story().run("Go.")
    story.ask_model()
    (call,) = story.reply("", ("read_file", {"path": "shop/carts.py"}))
    story.fail(call, text).judge()
    for kind in (AttemptsPane, ConfidencePane):
        assert text in " ".join((await text_at(kind, story, (50, 14))).split())
        assert "…" in await text_at(kind, story, (50, 4 if kind is AttemptsPane else 6))


async def test_nobody_reads_the_note_that_a_policy_would_have_sent_in_a_recording() -> None:
    told = [
        events.SessionStarted(session_id="s", workspace="/w", source="SWE-agent"),
        events.RunStarted(run=1, task="Go.", policy="combined", model="", approve=events.Approval.ALL),
        events.NotePrepared(text="Look again."),
    ]
    state = RunState()
    for number, event in enumerate(told, 1):
        state = apply(state, event.stamped(number, float(number)))
    gone_on = apply(state, events.SessionResumed(app_version="1").stamped(4, 4.0))
    for known, note, strip in (
        (state, "→ the policy would send this", "→ the policy would send a note"),
        (gone_on, "→ the model reads this next", "→ the model reads a note next"),
    ):
        for kind, words in ((NotePane, note), (IncidentStrip, strip)):
            async with Stage(kind).run_test(size=(120, 8)) as pilot:
                app: Any = pilot.app
                app.show(known, 0.0)
                await pilot.pause()
                assert words in text_of_pane(app.query_one(kind))
    async with Stage(StatusLine).run_test() as pilot:
        (line,) = pilot.app.query_one(StatusLine).draw(state, 0.0, 120)
        assert " model ? " in text_of(line)
        assert "approve all" not in text_of(line), "nobody is asked"


async def test_the_newest_messages_take_the_rows_that_are_left() -> None:
    story = Story().run("Go.")
    for name in ("a", "b"):
        story.ask_model()
        (call,) = story.reply("", ("read_file", {"path": name}))
        story.fail(
            call, f"There is no file '{name}' in the workspace, and none that is called alike."
        ).judge()
    rows = (await text_at(AttemptsPane, story, (50, 7))).split("\n")
    assert [row.strip() for row in rows[1:3]] == [
        "There is no file 'b' in the workspace, and",
        "none that is called alike.",
    ]
    assert [row.strip()[-1] for row in rows[4:5]] == ["…"]
