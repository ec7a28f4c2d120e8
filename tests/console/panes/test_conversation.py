"""The conversation's behaviour: what is drawn, what is kept, how it scrolls, opens and marks what happened."""

from __future__ import annotations

import pytest
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import Selection

from tests.console.panes.stage import Stage, rows_of, text_of_pane
from tests.console.panes.stories import ANSWER, PYTEST, Story, answered, backing_off, streaming, troubled
from tui_agent.console.panes import ConversationPane, TimelinePane, transcript
from tui_agent.console.panes.block_context import BlockContext
from tui_agent.console.panes.blocks import draw_block
from tui_agent.console.panes.density import LONGEST_RUN, Density
from tui_agent.core import events
from tui_agent.core.decision.endings import close_what_is_open
from tui_agent.core.projections.entries import AnyEntry, Entry
from tui_agent.frontend.lines.styled import Line, text_of


@pytest.fixture
def drawings(monkeypatch: pytest.MonkeyPatch) -> list[Entry]:
    """The closed entries that were drawn, each as often as it was."""
    drawn: list[Entry] = []

    def counted(entry: AnyEntry, width: int, context: BlockContext) -> list[Line]:
        if not context.open:
            drawn.append(entry)
        return draw_block(entry, width, context)

    monkeypatch.setattr(transcript, "draw_block", counted)
    return drawn


def long_story(iterations: int) -> Story:
    """Two entries an iteration: a reply and a call."""
    story = Story(max_iterations=10_000).run("A long task.")
    for number in range(iterations):
        story.ask_model()
        (call,) = story.reply(
            f"Step {number}, with some words about it.", ("read_file", {"path": f"src/file_{number}.py"})
        )
        story.succeed(
            call, f"line one of {number}\nline two\nline three\nline four\nline five\nline six"
        ).judge()
    return story


async def shown(pilot: Pilot[None], story: Story, density: Density = Density.NORMAL) -> ConversationPane:
    app = pilot.app
    assert isinstance(app, Stage)
    pane = app.query_one(ConversationPane)
    pane.use_density(density)
    app.show(story.state, story.now)
    await pilot.pause()
    return pane


async def test_of_five_thousand_entries_only_those_near_the_viewport_are_drawn(drawings: list[Entry]) -> None:
    story = long_story(2_500)
    assert len(story.state.conversation.entries) == 5_001
    async with Stage(ConversationPane).run_test(size=(80, 24)) as pilot:
        pane = await shown(pilot, story)
        before = len(drawings)
        assert before < 60
        story.ask_model()
        story.reply("One more.")
        story.judge()
        await shown(pilot, story)
        assert len(drawings) - before <= 2
        assert "One more." in text_of_pane(pane)
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        assert len(drawings) - before < 80
        assert "One more." in text_of_pane(pane)


async def test_a_call_that_lengthens_a_run_costs_the_same_however_long_the_session_is(
    drawings: list[Entry],
) -> None:
    story = Story(max_iterations=10_000).run("A long task.")
    async with Stage(ConversationPane).run_test(size=(80, 24)) as pilot:
        costs = []
        for length in (LONGEST_RUN // 2, 8 * LONGEST_RUN + LONGEST_RUN // 2):
            while story.iteration <= length:
                story.ask_model()
                (call,) = story.reply("", ("read_file", {"path": f"{story.iteration}.py"}))
                story.succeed(call, "text").judge()
                if story.iteration == length:
                    await shown(pilot, story)
                    before = len(drawings)
            text = text_of_pane(await shown(pilot, story))
            assert f"read {LONGEST_RUN // 2 + 1} files" in text
            costs.append(len(drawings) - before)
        assert costs[0] == costs[1] <= 3


async def test_scrolling_through_draws_what_comes_into_view_and_keeps_only_some() -> None:
    async with Stage(ConversationPane).run_test(size=(80, 24)) as pilot:
        pane = await shown(pilot, long_story(600))
        pane.focus()
        await pilot.press("home")
        assert "A long task." in text_of_pane(pane)
        for _ in range(60):
            await pilot.press("pagedown")
        assert len(pane.transcript._cache) <= 300
        await pilot.press("end")
        assert "Step 599" in text_of_pane(pane)


async def test_a_streaming_reply_draws_no_closed_entry_again(drawings: list[Entry]) -> None:
    story = long_story(50)
    async with Stage(ConversationPane).run_test(size=(80, 24)) as pilot:
        story.ask_model()
        pane = await shown(pilot, story)
        before = len(drawings)
        for number in range(40):
            story.add(events.ReplyDelta(text=f"word{number} " * 8), 0.04)
            await shown(pilot, story)
        assert len(drawings) == before > 0
        assert "word39" in text_of_pane(pane)


async def test_a_reply_looks_the_same_when_it_is_closed() -> None:
    story = Story().run("Go.")
    story.ask_model()
    answer = f"{ANSWER}\n\nThat is all."
    story.add(events.ReplyDelta(text=answer))
    async with Stage(ConversationPane).run_test(size=(90, 60)) as pilot:
        pane = await shown(pilot, story)
        streamed = [row.rstrip() for row in rows_of(pane)]
        story.reply(answer)
        await shown(pilot, story)
        assert [row.rstrip() for row in rows_of(pane)] == streamed


async def test_a_reply_is_markdown_while_it_comes_in_followed_and_can_be_copied() -> None:
    story = Story().run("Go.")
    story.ask_model()
    answer = "words\n\n" * 30 + "| name | what |\n|---|---|\n| **one** | two |\n\nThe `last` **bo"
    async with Stage(ConversationPane).run_test(size=(60, 20)) as pilot:
        pane = await shown(pilot, story)
        for start in range(0, len(answer), 9):
            story.add(events.ReplyDelta(text=answer[start : start + 9]))
            pane = await shown(pilot, story)
            assert pane.virtual_size.height == max(1, pane.transcript.rows)
            assert pane.scroll_offset.y == max(0, pane.virtual_size.height - pane.size.height)
        rows = [row.strip() for row in rows_of(pane) if row.strip()]
        assert rows[-4:] == ["name │ what", "─────┼─────", "one  │ two", "The last bo"]
        whole = pane.get_selection(Selection(None, None))
        assert whole is not None
        assert whole[0].rstrip().endswith("name │ what\none  │ two\n\nThe last bo")


async def test_the_end_is_followed_until_the_operator_scrolls_up_and_again_at_the_end() -> None:
    story = long_story(40)
    async with Stage(ConversationPane).run_test(size=(80, 24)) as pilot:
        pane = await shown(pilot, story)
        assert "Step 39" in text_of_pane(pane)
        pane.focus()
        await pilot.press("pageup", "pageup")
        place = text_of_pane(pane).split("\n")[:-1]
        story.ask_model()
        story.reply("News.")
        story.judge()
        await shown(pilot, story)
        assert text_of_pane(pane).split("\n")[:-1] == place
        assert "↓ 1 new · End" in text_of_pane(pane)
        await pilot.press("end")
        assert "News." in text_of_pane(pane)
        assert "new · End" not in text_of_pane(pane)


async def test_scrolling_up_over_estimated_heights_never_jumps() -> None:
    async with Stage(ConversationPane).run_test(size=(60, 20)) as pilot:
        pane = await shown(pilot, long_story(80))
        pane.focus()
        rows = text_of_pane(pane).split("\n")
        for _ in range(120):
            pane.scroll_to(y=pane.scroll_offset.y - 3)
            await pilot.pause()
            now = text_of_pane(pane).split("\n")
            assert now[3:-1] == rows[: len(rows) - 4]
            rows = now


async def test_the_place_is_kept_when_the_width_changes() -> None:
    async with Stage(ConversationPane).run_test(size=(110, 24)) as pilot:
        pane = await shown(pilot, long_story(200))
        pane.focus()
        await pilot.press(*["pageup"] * 12)
        step = next(row for row in rows_of(pane) if "── step" in row).strip(" ─")
        for width in (50, 30, 110):
            await pilot.resize_terminal(width, 24)
            await pilot.pause()
            assert f"{step} ─" in text_of_pane(pane), width


async def test_a_frame_that_grows_or_shrinks_is_no_scrolling_of_the_operators() -> None:
    async with Stage(ConversationPane).run_test(size=(80, 12)) as pilot:
        pane = await shown(pilot, long_story(40))
        for height in (30, 8, 20, 50):
            await pilot.resize_terminal(80, height)
            await pilot.pause()
            assert "file_39" in text_of_pane(pane), height
            assert "End" not in text_of_pane(pane), height


async def test_enter_opens_a_block_to_its_whole_input_and_output_and_folds_it_again() -> None:
    story = Story().run("Go.")
    story.ask_model()
    (call,) = story.reply("", ("bash", {"command": "seq 40", "timeout": 5}))
    story.succeed(call, "\n".join(f"out {n}" for n in range(40)))
    story.judge()
    async with Stage(ConversationPane).run_test(size=(70, 70)) as pilot:
        pane = await shown(pilot, story, Density.FULL)
        folded = text_of_pane(pane)
        assert "… 34 earlier lines (Enter or click)" in folded
        assert "out 39" in folded
        assert "out 3\n" not in folded
        pane.focus()
        await pilot.press("up", "enter")
        opened = text_of_pane(pane)
        assert "out 0" in opened
        assert "out 39" in opened
        assert "timeout: 5" in opened
        assert opened.count("▌") > 40
        await pilot.press("enter")
        assert text_of_pane(pane).replace("▌", " ") == folded
        await pilot.click(
            ConversationPane,
            offset=(10, next(y for y, row in enumerate(rows_of(pane), 1) if "earlier" in row)),
        )
        assert "out 0" in text_of_pane(pane)


async def test_of_a_result_that_was_cut_no_number_is_claimed_and_its_file_is_named() -> None:
    story = Story().run("Go.")
    story.ask_model()
    cut, long = story.reply("", ("bash", {"command": "seq 12000"}), ("bash", {"command": "seq 4000"}))
    ends = "\n".join([*map(str, range(1, 3000)), "[... left out ...]", *map(str, range(9000, 12001))])
    story.add(
        events.ToolSucceeded(
            call_id=cut,
            tool="bash",
            input={"command": "seq 12000"},
            content=ends,
            output_file="/kept/whole.txt",
        )
    )
    story.succeed(long, "\n".join(map(str, range(4000)))).judge()
    async with Stage(ConversationPane).run_test(size=(70, 40)) as pilot:
        pane = await shown(pilot, story, Density.FULL)
        rows = [row.strip(" │") for row in rows_of(pane)]
        assert [row for row in rows if row.startswith("…")] == [
            "… earlier (Enter or click)",
            "… 3,994 earlier lines (Enter or click)",
        ]
        pane.focus()
        await pilot.press("up", "up", "enter")
        opened = [text_of(line).strip(" │") for line in all_lines(pane)]
        assert "whole output: /kept/whole.txt" in opened
        assert "… earlier (all of it is in the file above)" in opened
        await pilot.press("enter", "end", "up", "enter")
        opened = [text_of(line).strip(" │") for line in all_lines(pane)]
        assert "… 2,000 earlier lines (c copies all of it)" in opened


@pytest.mark.parametrize(
    ("message", "first"),
    [
        (f"E\nKeyError: 'x'\n{'noise' * 3}\n" + "tail\n" * 30, "KeyError: 'x'"),
        ("start\n" * 30 + "KeyError: 'x'", "… 25 earlier lines (Enter or click)"),
        ("KeyError: 'x'", "KeyError: 'x'"),
    ],
    ids=["folded away", "in what is shown", "nothing is folded"],
)
async def test_a_folded_failure_begins_with_its_cause_where_that_would_be_hidden(
    message: str, first: str
) -> None:
    story = Story().run("Go.")
    story.ask_model()
    (call,) = story.reply("", ("bash", {"command": "make"}))
    story.fail(call, message).judge()
    async with Stage(ConversationPane).run_test(size=(70, 40)) as pilot:
        rows = [row.strip(" │") for row in rows_of(await shown(pilot, story))]
    head = next(number for number, row in enumerate(rows) if row.startswith("✗ bash"))
    assert rows[head + 1] == first
    assert "\n".join(rows).count("KeyError") == 1


@pytest.mark.parametrize(
    ("result", "rows"),
    [
        ("<tool_use_error>File has not\nbeen read yet.</tool_use_error>", ["File has not", "been read yet."]),
        ("<returncode>1</returncode>\n<output>\ncat: x\n</output>", ["exit code 1", "cat: x"]),
        ("<returncode>0</returncode>\n<output>\n</output>", []),
        ("a page that says <tool_use_error>", ["a page that says <tool_use_error>"]),
        ("<tool_use_error> is what it says", ["<tool_use_error> is what it says"]),
        ("<returncode>is it?</returncode>", ["<returncode>is it?</returncode>"]),
    ],
)
@pytest.mark.parametrize("failed", [False, True])
async def test_what_another_agent_put_around_a_result_is_not_shown(
    result: str, rows: list[str], failed: bool
) -> None:
    story = Story().run("Go.")
    story.ask_model()
    (call,) = story.reply("", ("Look", {"path": "x"}))
    if failed:
        story.fail(call, result)
    else:
        story.succeed(call, result)
    async with Stage(ConversationPane).run_test(size=(70, 30)) as pilot:
        pane = await shown(pilot, story, Density.FULL)
        body = [row.strip(" ").removeprefix("│ ") for row in rows_of(pane) if row.startswith("   │ ")]
    assert [row for row in body if row] == rows or (failed and not rows)
    entry = (*story.state.conversation.entries, *story.state.conversation.calls)[-1]
    assert result in (entry.content, entry.failure.message if entry.failure else "")


async def test_an_open_block_stays_open_when_its_call_ends() -> None:
    story = Story().run("Go.")
    story.ask_model()
    (call,) = story.reply("", ("bash", {"command": "make"}))
    story.start(call)
    async with Stage(ConversationPane).run_test(size=(70, 30)) as pilot:
        pane = await shown(pilot, story)
        pane.focus()
        await pilot.press("up", "enter")
        assert "command: make" in text_of_pane(pane)
        story.add(events.ToolSucceeded(call_id=call, tool="bash", input={"command": "make"}, content="done"))
        story.judge()
        await shown(pilot, story)
        assert "command: make" in text_of_pane(pane)


async def test_failures_are_quiet_while_they_may_be_recovered_and_loud_when_they_stand() -> None:
    story = troubled()
    async with Stage(ConversationPane).run_test(size=(90, 90)) as pilot:
        pane = await shown(pilot, story)
        loud = [
            text_of(line)
            for line in all_lines(pane)
            if any("on:error-background" in span.style for span in line)
        ]
        assert len(loud) == 1
        assert "failed 3/3" in loud[0]
        assert "failed 1/3" in text_of_pane(pane)


async def test_what_closes_a_run_is_broken_between_its_parts() -> None:
    async with Stage(ConversationPane).run_test(size=(60, 80)) as pilot:
        text = text_of_pane(await shown(pilot, answered()))
        assert "recovered · 11 s\n   $0.0084" in text


async def test_a_recovered_call_keeps_room_for_the_call_itself() -> None:
    tests = ("bash", {"command": "python -m deploy -q tests/unit"})
    story = Story().run("Make it green.").ask_model()
    (call,) = story.reply("", tests)
    story.fail(call, "exit code 1").judge("Try again.").ask_model("Try again.")
    (call,) = story.reply("", tests)
    story.succeed(call).judge()
    for width, words in (
        (90, "RECOVERED · 2nd try · after a note · 0.4 s\n"),
        (78, "RECOVERED · 2nd try · after a note\n"),
        (71, "RECOVERED · 2nd try · 0.4 s\n"),
    ):
        async with Stage(ConversationPane).run_test(size=(width, 40)) as pilot:
            text = text_of_pane(await shown(pilot, story))
            assert words in text
            assert "bash  python -m deploy -q tests/unit" in text.split("RECOVERED")[0].splitlines()[-1]


async def test_a_failure_that_was_recovered_says_so_and_is_quiet() -> None:
    async with Stage(ConversationPane).run_test(size=(90, 80)) as pilot:
        pane = await shown(pilot, answered())
        text = text_of_pane(pane)
        assert "failed 1/3 · recovered later" in text
        assert "RECOVERED · 2nd try · after a note" in text
        assert not any("on:error-background" in span.style for line in all_lines(pane) for span in line)


@pytest.mark.parametrize(
    "outcome", [outcome for outcome in events.Outcome if outcome is not events.Outcome.ANSWERED]
)
async def test_a_run_that_ends_without_an_answer_makes_its_last_failures_loud(
    outcome: events.Outcome,
) -> None:
    story = Story().run("Go.")
    story.ask_model()
    (call,) = story.reply("", ("bash", {"command": "make"}))
    story.fail(call, "exit code 2").judge()
    async with Stage(ConversationPane).run_test(size=(90, 40)) as pilot:
        pane = await shown(pilot, story)
        assert not loud_calls(pane)
        story.add(events.RunFinished(outcome=outcome, reason="out of patience", answer="A partial answer."))
        await shown(pilot, story)
        assert loud_calls(pane)
        assert "A partial answer." in text_of_pane(pane)


def all_lines(pane: ConversationPane) -> list:
    transcript = pane.transcript
    return [transcript.line(i, n) for i in range(len(transcript)) for n in range(transcript.measure(i))]


def loud_calls(pane: ConversationPane) -> list[str]:
    lines = (line for line in all_lines(pane) if any("on:error-background" in span.style for span in line))
    return [text for text in map(text_of, lines) if "bash" in text]


async def test_the_wait_before_a_retry_counts_down_and_then_stands_as_past() -> None:
    story = backing_off()
    async with Stage(ConversationPane).run_test(size=(90, 30)) as pilot:
        pane = await shown(pilot, story)
        assert "▰▰▱▱▱ 4.9 s · s skip the wait · c cancel" in text_of_pane(pane)
        assert "partial — cut" in text_of_pane(pane)
        story.now -= 86_400
        await shown(pilot, story)
        assert "▱▱▱▱▱ 8.0 s · s skip the wait" in text_of_pane(pane), (
            "the clock was put back: the wait is as long"
        )
        story.now += 86_400 + 3
        await shown(pilot, story)
        assert "▰▰▰▰▱ 1.9 s · s skip the wait · c cancel" in text_of_pane(pane)
        story.ask_model(attempt=3)
        await shown(pilot, story)
        assert "tried again after 6.5 s" in text_of_pane(pane), "the wait was skipped"
        assert "waiting for the model" in text_of_pane(pane)


async def test_reasoning_is_folded_to_a_line_and_opens() -> None:
    story = streaming()
    story.reply("Done.", reasoning="First this. " * 40)
    story.judge()
    async with Stage(ConversationPane).run_test(size=(80, 30)) as pilot:
        pane = await shown(pilot, story)
        assert "∴ reasoning, 80 words" in text_of_pane(pane)
        pane.focus()
        await pilot.press("up", "enter")
        assert text_of_pane(pane).count("First") == 40


async def test_a_diff_is_shown_with_numbers_and_signs() -> None:
    async with Stage(ConversationPane).run_test(size=(90, 90)) as pilot:
        text = text_of_pane(await shown(pilot, answered()))
        assert "3 - from statistics_helpers import median" in text
        assert "3 + from stats.core import mean, median" in text
        assert "+1 −1" in text


async def test_the_headline_of_an_edit_by_another_agent_is_its_file_and_its_result_no_warning() -> None:
    path = "/home/ada/projects/stats/a/long/way/down/test_stats.py"
    given = {"file_path": path, "old_string": "old " * 20, "new_string": "new " * 20}
    story = Story().run("Go.").ask_model()
    (call,) = story.reply("", ("Edit", given))
    story.succeed(call, "The file was updated.\nIt reads well.", diff="@@ -1,1 +1,1 @@\n-old\n+new")
    story.judge()
    async with Stage(ConversationPane).run_test(size=(90, 30)) as pilot:
        pane = await shown(pilot, story)
        assert f"✓ Edit  {path}" in text_of_pane(pane)
        assert "old_string" not in text_of_pane(pane)
        transcript = pane.transcript
        spans = [
            span
            for index in range(transcript.closed)
            for line in transcript.drawn(index).lines
            for span in line
        ]
        assert [span.style for span in spans if span.text == "It reads well."] == ["muted"]


async def test_an_answer_that_was_said_as_a_reply_is_not_said_twice() -> None:
    async with Stage(ConversationPane).run_test(size=(90, 120)) as pilot:
        text = text_of_pane(await shown(pilot, answered()))
        assert text.count("The suite is green") == 1
        assert "✓ answered · 4 steps · 1 failure, recovered" in text


async def test_a_note_stands_where_it_acted_with_what_the_model_did_next() -> None:
    async with Stage(ConversationPane).run_test(size=(90, 120)) as pilot:
        pane = await shown(pilot, answered())
        text = text_of_pane(pane)
        assert "↳ changed approach: bash → edit_file tests/test_stats.py" in text
        assert text.index("── step 2") < text.index("→ note") < text.index("The import is wrong.")


async def test_a_question_of_the_agent_waits_for_the_operator_and_takes_no_time() -> None:
    story = Story().run("Go.")
    story.ask_model()
    (call,) = story.reply("", ("ask_operator", {"question": "Which?"}))
    story.add(events.ToolStarted(call_id=call, tool="ask_operator", input={"question": "Which?"}))
    async with Stage(ConversationPane).run_test(size=(90, 60)) as pilot:
        text = text_of_pane(await shown(pilot, story))
        assert "? ask_operator" in text
        assert "waiting for you" in text
        assert "running" not in text


async def test_a_plan_that_is_brought_up_to_date_is_no_other_approach() -> None:
    story = Story().run("Go.")
    story.ask_model()
    (call,) = story.reply("", ("edit_file", {"path": "a.py", "old": "x", "new": "y"}))
    story.fail(call, "not found").judge()
    story.ask_model("edit_file failed: not found")
    story.reply(
        "",
        ("update_plan", {"plan": [{"step": "mend", "status": "pending"}]}),
        ("edit_file", {"path": "a.py", "old": "z", "new": "y"}),
    )
    async with Stage(ConversationPane).run_test(size=(90, 60)) as pilot:
        assert "↳ changed the call: edit_file a.py" in text_of_pane(await shown(pilot, story))


async def test_the_tries_of_one_model_call_are_one_block() -> None:
    story = backing_off()
    story.ask_model(attempt=3)
    story.reply("Done.")
    story.judge()
    async with Stage(ConversationPane).run_test(size=(90, 30)) as pilot:
        pane = await shown(pilot, story)
        text = text_of_pane(pane)
        assert text.count("≈ ") == 1
        assert "… 1 earlier try (Enter or click)" in text


async def test_markup_in_texts_is_text() -> None:
    story = Story().run("[red]task[/red] [/foo]")
    story.ask_model()
    (call,) = story.reply("[bold]reply[@click=app.quit]", ("bash", {"command": "[/]"}))
    story.fail(call, "[/nope] failed").judge()
    async with Stage(ConversationPane, TimelinePane).run_test(size=(90, 60)) as pilot:
        pane = await shown(pilot, story)
        for text in ("[red]task[/red] [/foo]", "[bold]reply[@click=app.quit]", "[/]", "[/nope] failed"):
            assert text in text_of_pane(pane)


async def test_selected_text_can_be_copied() -> None:
    async with Stage(ConversationPane).run_test(size=(80, 40)) as pilot:
        pane = await shown(pilot, answered())
        rows = [row.rstrip() for row in rows_of(pane)]
        y = next(number for number, row in enumerate(rows) if "answered" in row)
        top = pane.scroll_offset.y
        start = rows[y].index("answered")
        chosen = pane.get_selection(Selection(Offset(start, top + y), Offset(start + 8, top + y)))
        assert chosen == ("answered", "\n")
        whole = pane.get_selection(Selection(None, None))
        assert whole is not None
        assert "Make the tests green." in whole[0]
        meta = next(iter(pane.render_line(y))).style
        assert meta is not None
        assert meta.meta["offset"] == (0, top + y)


async def test_dragging_selects_and_the_selection_is_shown() -> None:
    async with Stage(ConversationPane).run_test(size=(80, 40)) as pilot:
        pane = await shown(pilot, answered())
        y = next(number for number, row in enumerate(rows_of(pane)) if "answered" in row)
        await pilot.mouse_down(ConversationPane, offset=(4, y + 1))
        await pilot.hover(ConversationPane, offset=(12, y + 1))
        await pilot.mouse_up(ConversationPane, offset=(12, y + 1))
        await pilot.pause()
        assert "answered"[:6] in (pilot.app.screen.get_selected_text() or "")


async def test_a_line_of_the_timeline_leads_to_its_block() -> None:
    story = long_story(60)
    story.ask_model()
    (call,) = story.reply("", ("bash", {"command": "pytest -q"}))
    story.fail(call, PYTEST)
    failed = story.seq
    story.judge()
    for _ in range(20):
        story.ask_model()
        story.reply("words " * 60)
        story.judge()
    async with Stage(ConversationPane).run_test(size=(80, 24)) as pilot:
        pane = await shown(pilot, story)
        assert "pytest -q" not in text_of_pane(pane)
        pane.go_to(failed)
        await pilot.pause()
        assert any(row.startswith("▌") and "pytest -q" in row for row in rows_of(pane))


async def test_a_new_theme_changes_the_colours_of_what_is_drawn_already() -> None:
    async with Stage(ConversationPane).run_test(size=(80, 24)) as pilot:
        pane = await shown(pilot, answered())
        before = [segment.style for segment in pane.render_line(3)]
        texts = rows_of(pane)
        pilot.app.theme = "agent-light"
        await pilot.pause()
        assert [segment.style for segment in pane.render_line(3)] != before
        assert rows_of(pane) == texts


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (events.FailureKind.INVALID_TOOL_CALL, "invalid call"),
        (events.FailureKind.UNKNOWN_TOOL, "unknown tool"),
    ],
)
async def test_a_call_that_was_wrong_itself_has_no_count(kind: events.FailureKind, says: str) -> None:
    story = Story().run("Go.")
    story.ask_model()
    (call,) = story.reply("", ("bash", {"command": "x"}))
    story.fail(call, "not JSON", kind).judge()
    async with Stage(ConversationPane).run_test(size=(80, 20)) as pilot:
        text = text_of_pane(await shown(pilot, story))
        assert says in text
        assert "1/3" not in text


async def test_what_a_progress_bar_wrote_over_is_not_hidden() -> None:
    story = Story().run("Go.")
    story.ask_model()
    (bash,) = story.reply("", ("bash", {"command": "x"}))
    story.succeed(bash, "".join(f"\r{number:5} of 5000 " + "#" * 60 for number in range(5_001)))
    story.judge()
    async with Stage(ConversationPane).run_test(size=(80, 20)) as pilot:
        text = text_of_pane(await shown(pilot, story, Density.FULL))
        assert "5000 of 5000" in text
        assert "earlier" not in text


async def test_of_a_running_command_only_the_end_is_kept_and_what_was_before_is_not_counted() -> None:
    story = Story().run("Go.")
    story.ask_model()
    (bash,) = story.reply("", ("bash", {"command": "seq 9999"}))
    story.start(bash)
    for number in range(20):
        story.add(events.ToolProgress(call_id=bash, text=f"line {number}\n"))
    async with Stage(ConversationPane).run_test(size=(80, 20)) as pilot:
        assert "… 15 earlier lines" in text_of_pane(await shown(pilot, story))
        for number in range(20, 2_000):
            story.add(events.ToolProgress(call_id=bash, text=f"line {number}\n"))
        text = text_of_pane(await shown(pilot, story))
    assert "… earlier (Enter or click)" in text
    assert "line 1999" in text


async def test_an_interrupted_call_keeps_what_it_had_written() -> None:
    story = Story().run("Go.")
    story.ask_model()
    (bash,) = story.reply("", ("bash", {"command": "pytest"}))
    story.start(bash).add(events.ToolProgress(call_id=bash, text="test_one ok\ntest_two FAILED\n"))
    story.add(events.Interrupted(cause="operator"))
    for event in close_what_is_open(story.state):
        story.add(event)
    async with Stage(ConversationPane).run_test(size=(80, 20)) as pilot:
        text = text_of_pane(await shown(pilot, story))
    written = [row.strip().removeprefix("│ ") for row in text.split("\n") if row.strip().startswith("│")]
    assert written == ["test_one ok", "test_two FAILED", "interrupted"]


async def test_one_endless_line_is_folded_like_many_lines_and_commands_keep_their_end() -> None:
    story = Story().run("Go.")
    story.ask_model()
    bash, read = story.reply("", ("bash", {"command": "x"}), ("read_file", {"path": "y"}))
    story.succeed(bash, "start " + "x " * 40_000 + "end-of-bash")
    story.succeed(read, "start-of-file " + "y " * 40_000 + "end")
    story.judge()
    async with Stage(ConversationPane).run_test(size=(80, 40)) as pilot:
        pane = await shown(pilot, story, Density.FULL)
        text = text_of_pane(pane)
        assert "end-of-bash" in text
        assert "start-of-file" in text
        assert "… earlier (Enter or click)" in text
        assert "… more (Enter or click)" in text
        assert len(all_lines(pane)) < 30


async def test_a_summary_is_shown_while_it_is_written_then_folded_and_opens() -> None:
    story = long_story(3)
    started = events.CompactionStarted(model="a/cheap", to_seq=9, groups=2, tokens=900)
    story.add(events.IterationStarted(iteration=4)).add(started)
    async with Stage(ConversationPane).run_test(size=(80, 30)) as pilot:
        pane = await shown(pilot, story)
        assert "summarising 2 steps" in text_of_pane(pane)
        made = events.Compacted(
            to_seq=9,
            groups=2,
            summary="Goal: a long task.\n\nDone: [b]file_0[/b] was read.",
            remark="…",
            tokens_before=41_200,
            tokens_after=6_300,
            model="a/cheap",
            cost=0.002,
            duration=3.1,
            rule="window.summary",
        )
        story.add(made).ask_model()
        pane = await shown(pilot, story)
        folded = text_of_pane(pane)
        assert "▤ 2 steps summarised  41.2k → 6.3k tokens  window.summary" in folded
        assert "a/cheap · 3.1 s · $0.0020" in folded
        pane.focus()
        await pilot.press("up", "up", "enter")
        assert "Done: [b]file_0[/b] was read." in text_of_pane(pane)
        story.add(events.CompactionFailed(reason="The summary is too long.", rule="window.summary_failed"))
        await pilot.press("end")
        pane = await shown(pilot, story)
        assert "▤ no summary" in text_of_pane(pane)
