"""What the prompt offers beside text: files, earlier prompts, the editor; reports of the session."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.console.live_harness import live
from tests.console.real_session import real_live
from tui_agent.console.prompt.completion import Completions
from tui_agent.console.screens.pick import PickScreen
from tui_agent.console.screens.report import ReportPane, ReportScreen
from tui_agent.console.screens.rewind import RewindScreen
from tui_agent.frontend.commands.registry import COMMANDS
from tui_agent.frontend.editor import EditorError, edit
from tui_agent.frontend.lines.styled import text_of

WRITE = {"calls": [{"tool": "write_file", "args": {"path": "cart.py", "content": "x = 1\n"}}]}
FINISH = {"calls": [{"tool": "finish", "args": {"answer": "done"}}]}


async def test_a_file_is_completed_after_an_at_sign_and_sent_as_it_stands(tmp_path: Path) -> None:
    async with real_live(tmp_path, [FINISH]) as console:
        (console.workspace / "src").mkdir()
        (console.workspace / "src" / "cart.py").write_text("x = 1\n", encoding="utf-8")
        prompt = console.screen.prompt
        prompt.put("Look at ")
        await console.press("@", "c", "a", "r")
        await console.until(lambda: prompt.completions.choice == "Look at @src/cart.py ")
        await console.press("tab")
        assert prompt.text == "Look at @src/cart.py "
        await console.press("enter")
        await console.until(lambda: console.session.state.run.task == "Look at @src/cart.py")


@pytest.mark.parametrize("width", [60, 80])
async def test_what_the_chosen_command_does_is_read_in_full_and_a_long_argument_leaves_the_others_room(
    width: int,
) -> None:
    async with live((width, 24)) as console:
        await console.type("/")
        await console.until(lambda: "› /help " in console.shown())
        assert "Run one step, then wait  (F10)" in console.shown()
        for command in COMMANDS:
            words = console.shown()
            assert f"› /{command.name}" in words
            assert command.help in " ".join(words.split())
            await console.press("down")


async def test_an_earlier_prompt_is_found_by_its_letters(tmp_path: Path) -> None:
    async with real_live(tmp_path, []) as console:
        for text in ("fix the cart", "write the docs", "fix the tests"):
            console.screen.prompt.recall.add(text)
        console.screen.say("Looking for models…")
        await console.press("ctrl+r")
        await console.opens(PickScreen)
        assert not console.remarks(), "it would cover the list"
        await console.press("c", "a", "r")
        await console.press("enter")
        await console.until(lambda: console.screen.prompt.text == "fix the cart")


async def test_the_status_before_the_first_run_names_the_model_and_policy_of_the_coming_one(
    tmp_path: Path,
) -> None:
    async with real_live(tmp_path, []) as console:
        await console.say("/status")
        await console.opens(ReportScreen)
        pane = console.app.screen.query_one(ReportPane)
        await console.until(lambda: pane.lines)
        rows = [text_of(line).split() for line in pane.lines]
        assert ["policy", str(console.session.settings.policy)] in rows
        assert ["model", "none", "chosen"] not in rows


async def test_an_earlier_prompt_is_looked_for_where_there_is_one(tmp_path: Path) -> None:
    async with real_live(tmp_path, []) as console:
        await console.press("ctrl+r")
        await console.until(lambda: "There is no earlier prompt yet." in console.remarks())


async def test_an_own_command_is_run_shown_once_and_goes_with_the_next_message(tmp_path: Path) -> None:
    async with real_live(tmp_path, [FINISH, FINISH]) as console:
        await console.say("!echo thr''ee; pwd; exit 3")
        await console.until(lambda: "three" in console.shown())
        assert console.session.state.run.number == 0
        head = next(row for row in console.shown().split("\n") if "$ echo" in row)
        assert "exit code 3" in head, "where its output is folded, too"
        await console.say("What is that?")
        await console.until(lambda: console.session.state.run.outcome is not None)
        read = str(console.session.state.history.groups[0].messages[0]["content"])
        assert read.startswith("I ran `echo thr''ee; pwd; exit 3` myself. It printed:\n")
        assert "exit code 3" in read
        assert str(console.workspace) in read
        assert read.endswith("\n\nWhat is that?")
        assert console.session.state.run.task == "What is that?"
        await console.until(lambda: "with the output of $ echo thr''ee; pwd; exit 3" in console.shown())
        assert console.shown().count("three") == 1
        await console.say("And now?")
        await console.until(lambda: console.session.state.run.number == 2)
        tasks = [group for group in console.session.state.history.groups if group.kind == "task"]
        assert tasks[-1].messages[0]["content"] == "And now?"


async def test_an_own_command_stands_below_no_step_of_a_run_that_was_rewound(tmp_path: Path) -> None:
    async with real_live(tmp_path, [FINISH]) as console:
        await console.run("Begin.")
        await console.until(lambda: "── step 1 ──" in console.shown())
        await console.say("/undo")
        await console.opens(RewindScreen)
        await console.press("enter")
        await console.until(lambda: "The conversation was rewound to here." in console.shown())
        console.screen.prompt.put("")
        await console.say("!echo thr''ee")
        await console.until(lambda: "three" in console.shown() and "── step" not in console.shown())


async def test_a_long_own_command_leaves_its_time_and_its_key_on_its_line(tmp_path: Path) -> None:
    async with real_live(tmp_path, [FINISH], size=(80, 24)) as console:
        await console.say("!sleep 300; echo " + "word " * 30)
        await console.until(lambda: "$ sleep 300" in console.shown())
        [line] = [line for line in console.shown().splitlines() if "$ sleep 300" in line]
        assert line.rstrip().endswith("s  Esc interrupt")
        await console.press("escape")
        await console.until(lambda: "Esc interrupt" not in console.shown())


async def test_an_own_command_shows_what_it_prints_while_it_runs_and_esc_interrupts_it(
    tmp_path: Path,
) -> None:
    async with real_live(tmp_path, [FINISH]) as console:
        await console.say("!echo first; printf 'ten\\rtwenty'; sleep 300 & wait")
        await console.until(lambda: "first" in console.shown() and "twenty" in console.shown())
        assert "Esc interrupt" in console.shown()
        await console.say("!echo second")
        await console.until(lambda: console.screen.prompt.text == "!echo second")
        console.screen.prompt.put("")
        await console.press("escape")
        await console.until(lambda: console.screen.parts.own_command.run is None)
        [ran] = console.session.state.history.own_commands
        assert ran.printed == "first\nten\rtwenty\n(interrupted)"
        await console.until(lambda: "(interrupted)" in console.shown())


async def test_an_own_command_has_the_room_of_an_empty_conversation_while_it_runs_and_afterwards(
    tmp_path: Path,
) -> None:
    async with real_live(tmp_path, [FINISH], size=(80, 40)) as console:
        await console.say("!seq 101 120; sleep 300")
        await console.until(lambda: {str(n) for n in range(101, 121)} <= set(console.shown().split()))
        await console.press("escape")
        await console.until(lambda: "(interrupted)" in console.shown())
        await console.until(
            lambda: "101" in console.shown().split() and console.screen.parts.own_command.run is None
        )
        await console.say("!seq 201 299")

        def fills_the_room() -> bool:
            """What runs may have fewer rows, as the block above still has them: seen is what has ended."""
            shown = [word for word in console.shown().split() if word.isdecimal() and 200 < int(word) < 300]
            rows = console.screen.dashboard.conversation.size.height
            return "299" in shown and len(shown) - 2 >= rows - 4

        await console.until(lambda: console.screen.parts.own_command.run is None and fills_the_room())


@pytest.mark.parametrize(
    ("command", "says"),
    [("status", "cart.py"), ("cost", "tokens in")],
)
async def test_reports_of_the_session(tmp_path: Path, command: str, says: str) -> None:
    async with real_live(tmp_path, [WRITE, FINISH]) as console:
        await console.run("write it")
        await console.say(f"/{command}")
        await console.opens(ReportScreen)
        pane = console.app.screen.query_one(ReportPane)
        await console.until(lambda: pane.lines)
        assert says in "\n".join(text_of(line) for line in pane.lines)


async def test_clear_puts_a_new_session_in_the_place_of_this_one(tmp_path: Path) -> None:
    options: dict[str, object] = {"model": "scripted:recovery", "state_dir": tmp_path / "state"}
    async with real_live(tmp_path, [], overrides=options) as console:
        before = console.session.id
        await console.say("/clear")
        await console.until(
            lambda: len(console.app.tabs) == 1 and console.app.tabs[0].session_id not in {"", before}
        )
        assert console.app.shown is console.app.tabs[0]


async def test_a_text_goes_through_the_editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "ed"
    script.write_text('#!/bin/sh\nprintf " and more\\n" >> "$2"\n', encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("VISUAL", f"{script} --wait")
    assert await edit("a text") == "a text and more"
    monkeypatch.setenv("VISUAL", str(tmp_path / "missing"))
    with pytest.raises(EditorError, match="set VISUAL or EDITOR"):
        await edit("a text")


async def test_a_model_that_sees_no_images_is_named_while_the_message_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with real_live(tmp_path, ["done", "done"], files={"pic.png": "x"}) as console:
        asked: list[str] = []

        async def blind_model(text: str) -> str:
            asked.append(text)
            return "openai/blind" if "pic.png" in text else ""

        monkeypatch.setattr(console.session.models, "blind", blind_model)
        await console.press(*"see @pic.png x")
        await console.until(
            lambda: "openai/blind cannot see images: it gets their names alone" in console.remarks()
        )
        await console.press("y")
        await console.until(lambda: asked[-1:] == ["see @pic.png xy"])
        assert console.remarks().count("cannot see images") == 1, "said once of a draft"
        console.screen.prompt.put("")
        await console.press(*"no picture", "enter")
        await console.until(lambda: console.session.state.run.number == 1)
        assert all("pic.png" in text for text in asked)


async def test_a_key_with_the_list_closed_lays_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async with live() as console:
        completions = console.screen.query_one(Completions)
        asked: list[bool] = []

        def refresh(*_: object, layout: bool = False, **__: object) -> Completions:
            asked.append(layout)
            return completions

        monkeypatch.setattr(completions, "refresh", refresh)
        await console.type("hello")
        assert not any(asked)
