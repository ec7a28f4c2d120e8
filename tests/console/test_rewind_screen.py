"""Going back from the console: what is offered, what is shown before, what it does, and that it can be undone."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.console.real_session import RealConsole, real_live
from tui_agent.console.screens.live import LiveScreen
from tui_agent.console.screens.rewind import Preview, RewindList, RewindScreen
from tui_agent.core import events
from tui_agent.frontend.lines.rewind import preview
from tui_agent.session.rewind import RewindPlan, RewindPoint
from tui_agent.store.file_changes import FileChange


def write(path: str, content: str) -> dict[str, Any]:
    return {"calls": [{"tool": "write_file", "args": {"path": path, "content": content}}]}


def command(text: str) -> dict[str, Any]:
    return {"calls": [{"tool": "bash", "args": {"command": text}}]}


TURNS: list[Any] = [write("a.txt", "one"), "first", write("b.txt", "new"), write("a.txt", "two"), "second"]


async def open_screen(live: RealConsole, line: str = "/rewind") -> RewindScreen:
    """The screen, with its first preview."""
    await live.say(line)
    screen = await live.opens(RewindScreen)
    assert isinstance(screen, RewindScreen)
    await looked(live, screen)
    return screen


async def looked(live: RealConsole, screen: RewindScreen) -> None:
    """Until the preview shows what is chosen."""
    await live.until(lambda: not screen._looking and "Looking" not in live.shown())


async def to_second_task(live: RealConsole, screen: RewindScreen) -> None:
    """The cursor on the point before the second task."""
    choices = screen.query_one(RewindList)
    while "make it two" not in choices.chosen.label:
        await live.press("down")
    await looked(live, screen)


def content(live: RealConsole) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(live.workspace.iterdir())}


def tasks(live: RealConsole) -> list[str]:
    messages = (message for group in live.session.state.history.groups for message in group.messages)
    return [
        str(m["content"]) for m in messages if m["role"] == "user" and str(m["content"]).startswith("make")
    ]


BEFORE, AFTER = {"a.txt": "one"}, {"a.txt": "two", "b.txt": "new"}
BOTH_TASKS = ["make it one", "make it two"]


@pytest.mark.parametrize(
    ("key", "files", "remarks"),
    [
        ("b", BEFORE, ["5 blocks of the conversation left out", "2 files brought back"]),
        ("f", BEFORE, ["2 files brought back"]),
        ("c", AFTER, ["5 blocks of the conversation left out"]),
    ],
)
async def test_a_rewind_does_what_it_showed_and_is_taken_back_by_undo(
    tmp_path: Path, key: str, files: dict[str, str], remarks: list[str]
) -> None:
    async with real_live(tmp_path, TURNS, files={"a.txt": "before"}) as live:
        await live.run("make it one", "make it two")
        screen = await open_screen(live)
        await to_second_task(live, screen)
        await live.press(key)
        await looked(live, screen)
        text = live.shown()
        assert ("5 blocks are left out; the model no longer sees them." in text) is (key != "f")
        assert ("~ change  a.txt" in text and "- delete  b.txt" in text) is (key != "c")
        assert content(live) == AFTER, "looking changes nothing"
        await live.press("enter")
        await live.until(lambda: "/redo takes it back" in live.remarks())
        assert all(part in live.remarks() for part in remarks)
        assert (content(live), tasks(live)) == (files, BOTH_TASKS if key == "f" else BOTH_TASKS[:1])

        await open_screen(live, "/rewind undo")
        assert ("+ create  b.txt" in live.shown()) is (key != "c")
        assert ("5 blocks come back; the model sees them again." in live.shown()) is (key != "f")
        await live.press("enter")
        await live.until(lambda: "The rewind was taken back" in live.remarks())
        assert (content(live), tasks(live)) == (AFTER, BOTH_TASKS)


async def test_escape_leaves_everything_as_it_is(tmp_path: Path) -> None:
    async with real_live(tmp_path, TURNS) as live:
        await live.run("make it one", "make it two")
        before = live.session.state
        screen = await open_screen(live)
        await to_second_task(live, screen)
        assert "↑↓ point  ←→ what" in live.shown()
        assert "PgDn" not in live.shown()
        await live.press("escape")
        await live.until(lambda: isinstance(live.app.screen, LiveScreen))
        assert live.session.state is before
        assert content(live) == AFTER
        assert live.screen.focused is live.screen.prompt


async def test_it_is_refused_in_words_while_a_run_goes_on(tmp_path: Path) -> None:
    asking = {"calls": [{"tool": "ask_operator", "args": {"question": "which?"}}]}
    async with real_live(tmp_path, [asking, "done"]) as live:
        await live.session.submit("go")
        await live.until(lambda: live.session.state.escalation)
        live.screen.commands.run("rewind")
        await live.until(lambda: "Nothing can be rewound now: a run goes on." in live.remarks())
        assert isinstance(live.app.screen, LiveScreen)
        await live.session.stop()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/rewind", "There is nothing to go back to"),
        ("/rewind nonsense", "Write /rewind, or /rewind undo."),
    ],
)
async def test_what_cannot_be_is_reported_in_words(tmp_path: Path, line: str, words: str) -> None:
    async with real_live(tmp_path, []) as live:
        await live.say(line)
        await live.until(lambda: words in live.remarks())
        assert isinstance(live.app.screen, LiveScreen)


async def test_an_undo_without_a_rewind_is_reported_in_words(tmp_path: Path) -> None:
    async with real_live(tmp_path, TURNS) as live:
        await live.run("make it one")
        await live.say("/rewind undo")
        await live.until(lambda: "There is no rewind to take back" in live.remarks())


async def test_a_run_that_an_earlier_process_left_open_can_be_stopped_and_then_rewound(
    tmp_path: Path,
) -> None:
    async with real_live(tmp_path, TURNS) as live:
        await live.run("make it one")
        folder = live.session.folder
    journal = folder / "events.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    ended = next(place for place, line in enumerate(lines) if b'"type":"iteration_finished"' in line)
    journal.write_bytes(b"".join(lines[: ended + 1]))
    async with real_live(tmp_path, TURNS, resume=folder) as live:
        await live.say("/rewind")
        await live.until(lambda: "Stop it first with /stop." in live.remarks())
        await live.say("/stop")
        await live.until(lambda: not live.session.state.running)
        assert live.session.state.run.outcome is events.Outcome.INTERRUPTED
        assert live.session.state.metrics.model_calls == 1, "nothing was done before it ended"
        await open_screen(live)


async def test_files_that_changed_behind_the_preview_are_shown_before_anything_is_done(
    tmp_path: Path,
) -> None:
    async with real_live(tmp_path, TURNS) as live:
        await live.run("make it one", "make it two")
        screen = await open_screen(live)
        await to_second_task(live, screen)
        (live.workspace / "c.txt").write_text("made by somebody else")
        await live.press("enter")
        await live.until(lambda: "- delete  c.txt" in live.shown())
        assert (live.workspace / "c.txt").exists()
        assert live.app.screen is screen
        await live.press("enter")
        await live.until(lambda: "3 files brought back" in live.remarks())
        assert content(live) == BEFORE


async def test_a_point_after_which_nothing_came_is_not_gone_back_to(tmp_path: Path) -> None:
    async with real_live(tmp_path, TURNS) as live:
        await live.run("make it one", "make it two")
        screen = await open_screen(live)
        await live.press("f")
        await looked(live, screen)
        seq = live.session.state.seq
        await live.press("enter")
        await live.until(lambda: "Nothing would change here" in live.remarks())
        assert (live.app.screen, live.session.state.seq) == (screen, seq)


async def test_the_mouse_chooses_points_scopes_and_hints(tmp_path: Path) -> None:
    async with real_live(tmp_path, TURNS) as live:
        await live.run("make it one", "make it two")
        screen = await open_screen(live)
        choices = screen.query_one(RewindList)
        place = next(number for number, choice in enumerate(choices.rows) if "make it two" in choice.label)
        await live.pilot.click(RewindList, offset=(20, place))
        await looked(live, screen)
        assert choices.cursor == place
        await live.pilot.click("OptionRow", offset=(12, 0))
        await looked(live, screen)
        assert screen.scope == "conversation"
        await live.pilot.click("RewindScreen KeyHints", offset=(2, 0))
        await live.until(lambda: "5 blocks of the conversation left out" in live.remarks())
        assert (content(live), tasks(live)) == (AFTER, ["make it one"])


async def test_a_long_list_of_files_stays_in_its_place_and_can_be_read_to_its_end(tmp_path: Path) -> None:
    many = command("for i in $(seq 100 199); do echo x > file_$i.txt; done")
    async with real_live(tmp_path, [many, "done"]) as live:
        await live.run("make many")
        for size in ((80, 24), (120, 40), (200, 60), (40, 12)):
            await live.pilot.resize_terminal(*size)
            await live.until(lambda size=size: live.app.screen.size == size)
            screen = await open_screen(live)
            await live.press("end")
            await looked(live, screen)
            assert "Enter go back" in live.shown()
            preview = screen.query_one(Preview)
            assert preview.unseen
            assert screen.size.width < 80 or "PgUp PgDn read on" in live.shown()
            pages = 0
            while "file_199.txt" not in live.shown():
                await live.press("pagedown")
                pages += 1
                assert pages < 60
            assert pages
            assert "Enter go back" in live.shown()
            await live.press("escape")
            await live.opens(LiveScreen)


def test_names_of_files_are_spelled_out_in_one_line_each() -> None:
    changes = (FileChange("create", "evil\x1b[2J\nname"), FileChange("delete", "a\u202eb"))
    plan = RewindPlan("files", RewindPoint(3, 0.0, "before: x", "ref"), files=changes)
    shown = "\n".join(
        "".join(span.text for span in line)
        for line in Preview(list(preview(plan, "/w\x1b[0m"))).draw(100, 40)
    )
    assert "\x1b" not in shown
    assert "+ create  evil␛[2J␊name" in shown
    assert "- delete  a‹U+202E›b" in shown


async def test_the_palette_offers_both_going_back_and_taking_it_back(tmp_path: Path) -> None:
    async with real_live(tmp_path, TURNS) as live:
        await live.run("make it one")
        await live.press("ctrl+p")
        await live.press(*"rewind")
        await live.until(lambda: "rewind [undo]" in live.shown() and "rewind undo" in live.shown())
        await live.press("enter")
        await live.until(lambda: live.app.screen.__class__.__name__ != "CommandPalette")
        await live.opens(RewindScreen)


async def test_undo_takes_back_message_by_message_and_redo_brings_back_one_by_one(tmp_path: Path) -> None:
    async with real_live(tmp_path, TURNS, files={"a.txt": "before"}) as live:
        await live.say("/undo")
        await live.until(lambda: "no message to take back" in live.remarks())
        await live.run("make it one", "make it two")
        for message, files in (("make it two", BEFORE), ("make it one", {"a.txt": "before"})):
            await open_screen(live, "/undo")
            assert f"before: {message}" in live.shown()
            assert "Go back" in live.shown()
            await live.press("enter")
            await live.until(lambda message=message: live.screen.prompt.text == message)
            assert content(live) == files
            assert live.screen.prompt.selected_text == message
            await live.press("end", *("slash", *"redo"), "enter")
            await live.until(lambda: "/redo stands behind a text" in live.remarks())
            assert live.session.state.rewound is not None, "it was not sent, so the rewind can be taken back"
            live.screen.prompt.put("")
        assert tasks(live) == []
        for files in (BEFORE, AFTER):
            await open_screen(live, "/redo")
            assert "Take the rewind back" in live.shown()
            assert "Enter take it back" in live.shown()
            await live.press("enter")
            await live.until(lambda files=files: content(live) == files)
        await live.until(lambda: tasks(live) == BOTH_TASKS)


async def test_undo_brings_back_what_commands_took_away_that_git_does_not_have(tmp_path: Path) -> None:
    commands = (
        "git clean -ffdqx", "rm -rf data private", ": > notes.txt; for f in data/*; do : > $f; done",
        "mv src.py notes.txt", "git checkout -- .", "git stash -u -q",
    )  # fmt: skip
    workspace = tmp_path / "workspace"
    for folder in ("data", "private"):
        (workspace / folder).mkdir(parents=True)
        for number in range(40):
            (workspace / folder / f"{number}.bin").write_bytes(bytes([number]) * 1_000)
    turns = [turn for each in commands for turn in (command(each), "done")]
    files = {".gitignore": "private/\n", "src.py": "x = 1\n", "notes.txt": "notes\n"}
    async with real_live(tmp_path, turns, files=files) as live:
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        for words in (("init", "-q"), ("add", ".gitignore", "src.py"), (*who, "commit", "-qm", "a")):
            subprocess.run(["git", *words], cwd=workspace, check=True)
        (workspace / "src.py").write_text("x = 2\n")
        before = everything(workspace)
        for number, each in enumerate(commands):
            await live.run(f"task {number}")
            assert everything(workspace) != before, each
            await open_screen(live, "/undo")
            await live.press("enter")
            await live.until(lambda number=number: live.screen.prompt.text == f"task {number}")
            assert everything(workspace) == before, each
            live.screen.prompt.put("")


def everything(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and ".git" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
