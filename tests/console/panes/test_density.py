"""How much of a call is shown: one line or its output, runs of calls that only look, what opens and what is copied."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot

from tests.console.panes.stage import Stage, rows_of, text_of_pane
from tests.console.panes.stories import Story
from tui_agent.console.panes import ConversationPane
from tui_agent.console.panes.density import Density

OUTPUT = "collected 7 items\n\n.......\n===== 7 passed in 0.02s ====="
DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"


def looked(story: Story, tool: str, arguments: dict[str, Any], reasoning: str = "") -> None:
    """A step of one call that shows three lines."""
    story.ask_model()
    (call,) = story.reply("", (tool, arguments), reasoning=reasoning)
    story.succeed(call, "one\ntwo\nthree").judge()


def worked() -> Story:
    """Three looks, a command, an edit, and a failure."""
    story = Story().run("Go.")
    looked(story, "read_file", {"path": "a.py"})
    looked(story, "grep", {"pattern": "needle"}, reasoning="Where is it?")
    looked(story, "read_file", {"path": "b.py"})
    story.ask_model()
    test, edit, make = story.reply(
        "Now the tests.",
        ("bash", {"command": "pytest"}),
        ("edit_file", {"path": "a.py", "old": "x = 1", "new": "x = 2"}),
        ("bash", {"command": "make"}),
    )
    story.succeed(test, OUTPUT)
    story.succeed(edit, "edited a.py", diff=DIFF)
    return story.fail(make, "exit code 2:\nno rule\nto make it").judge()


async def shown(pilot: Pilot[None], story: Story, density: Density = Density.NORMAL) -> ConversationPane:
    app: App[None] = pilot.app
    assert isinstance(app, Stage)
    pane = app.query_one(ConversationPane)
    pane.use_density(density)
    app.show(story.state, story.now)
    await pilot.pause()
    return pane


@pytest.mark.parametrize(
    ("density", "there", "not_there"),
    [
        (
            Density.COMPACT,
            ("→ 7 passed in 0.02s", "✓ edit_file  a.py", "to make it"),
            ("step", "x = 2", "7 items"),
        ),
        (Density.NORMAL, ("→ 7 passed in 0.02s", "x = 2", "to make it", "── step 4"), ("step 2", "7 items")),
        (
            Density.FULL,
            ("7 items", "x = 2", "to make it", "── step 2", "three", "reasoning, "),
            ("searched",),
        ),
    ],
)
async def test_a_density_shows_so_much_of_each_call_and_a_failure_always(
    density: Density, there: tuple[str, ...], not_there: tuple[str, ...]
) -> None:
    async with Stage(ConversationPane).run_test(size=(90, 60)) as pilot:
        text = text_of_pane(await shown(pilot, worked(), density))
    assert [words for words in there if words not in text] == []
    assert [words for words in not_there if words in text] == []
    run = "✓ read 2 files, searched once  b.py, needle, a.py"
    assert (run in text) is (density is not Density.FULL)


async def test_a_run_has_no_gap_where_a_call_names_nothing() -> None:
    story = Story().run("Go.")
    looked(story, "list_dir", {})
    looked(story, "read_file", {"path": "a.py"})
    async with Stage(ConversationPane).run_test(size=(90, 60)) as pilot:
        (run,) = (row for row in rows_of(await shown(pilot, story)) if "listed 1 folder" in row)
    assert run.split("folder", 1)[1].strip(" │▌") == "a.py"


async def test_enter_opens_a_run_then_its_first_call_then_folds_both_and_o_shows_all_for_a_while() -> None:
    async with Stage(ConversationPane).run_test(size=(90, 60)) as pilot:
        pane = await shown(pilot, worked())
        folded = text_of_pane(pane)
        pane.focus()
        await pilot.press("home", "down", "down", "enter")
        opened = text_of_pane(pane).replace("▌", " ")
        assert [row.split()[2] for row in rows_of(pane) if "→ 3 lines" in row] == ["a.py", "needle", "b.py"]
        await pilot.press("enter")
        assert "path: a.py" in text_of_pane(pane)
        await pilot.press("down", "down", "enter")
        assert "path: b.py" not in opened
        assert "pattern: needle" in text_of_pane(pane)
        await pilot.press("up", "up", "enter")
        assert text_of_pane(pane).replace("▌", " ") == folded
        await pilot.press("o")
        assert "7 items" in text_of_pane(pane)
        await pilot.press("o")
        assert text_of_pane(pane).replace("▌", " ") == folded


async def test_what_a_run_hides_is_copied_with_it_and_opened_by_a_search() -> None:
    class Copying(Stage):
        copied = ""

        def on_conversation_pane_copied(self, event: ConversationPane.Copied) -> None:
            self.copied = event.text

    app = Copying(ConversationPane)
    async with app.run_test(size=(90, 60)) as pilot:
        story = worked()
        pane = await shown(pilot, story)
        pane.focus()
        await pilot.press("home", "down", "down", "c")
        assert app.copied == "\n\n".join(["one\ntwo\nthree"] * 3)
        found = next(entry for entry in story.state.conversation.entries if "needle" in repr(entry))
        pane.go_to(found.seq, ("two",))
        await pilot.pause()
        assert "│ two" in text_of_pane(pane)


async def test_a_replay_that_goes_back_shortens_a_run() -> None:
    story = Story().run("Go.")
    states = []
    for number in range(6):
        looked(story, "read_file", {"path": f"{number}.py"}, reasoning="Hm." * (number % 2))
        states.append(story.state)
    async with Stage(ConversationPane).run_test(size=(90, 30)) as pilot:
        pane = await shown(pilot, story)
        for state, (one, two) in zip(reversed(states[1:]), pairwise(range(6, 0, -1)), strict=True):
            pane.show(state, story.now)
            assert f"read {one} files" in text_of_pane(pane)
            assert f"read {two + 1} files" in text_of_pane(pane)
        pane.show(states[0], story.now)
        assert "✓ read_file  0.py" in text_of_pane(pane)
