"""Going back from the console: what is offered, what is shown before, what it does, and that it can be undone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.console.real_flight import RealFlight, real_flight
from tui_agent import events as e
from tui_agent.console.going_back import passages_of
from tui_agent.console.screens.flight import FlightScreen
from tui_agent.console.screens.rewind import Preview, RewindScreen, WayList
from tui_agent.sessions.checkpoints import FileChange
from tui_agent.sessions.rewind import RewindPlan, RewindPoint


def write(path: str, content: str) -> dict[str, Any]:
    return {"calls": [{"tool": "write_file", "args": {"path": path, "content": content}}]}


def command(text: str) -> dict[str, Any]:
    return {"calls": [{"tool": "bash", "args": {"command": text}}]}


TURNS: list[Any] = [write("a.txt", "one"), "first", write("b.txt", "new"), write("a.txt", "two"), "second"]


async def open_screen(flight: RealFlight, line: str = "/rewind") -> RewindScreen:
    """The screen, with its first preview."""
    await flight.command(line)
    screen = await flight.opens(RewindScreen)
    assert isinstance(screen, RewindScreen)
    await looked(flight, screen)
    return screen


async def looked(flight: RealFlight, screen: RewindScreen) -> None:
    """Until the preview shows what is chosen."""
    await flight.until(lambda: not screen._looking and "Looking" not in flight.shown())


async def to_second_task(flight: RealFlight, screen: RewindScreen) -> None:
    """The cursor on the point before the second task."""
    ways = screen.query_one(WayList)
    while "make it two" not in ways.chosen.label:
        await flight.press("down")
    await looked(flight, screen)


def content(flight: RealFlight) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(flight.workspace.iterdir())}


def tasks(flight: RealFlight) -> list[str]:
    messages = (message for group in flight.session.state.history.groups for message in group.messages)
    return [
        str(m["content"]) for m in messages if m["role"] == "user" and str(m["content"]).startswith("make")
    ]


BEFORE, AFTER = {"a.txt": "one"}, {"a.txt": "two", "b.txt": "new"}
BOTH_TASKS = ["make it one", "make it two"]


@pytest.mark.parametrize(
    ("key", "files", "told_of"),
    [
        ("b", BEFORE, ["5 blocks of the conversation left out", "2 files brought back"]),
        ("f", BEFORE, ["2 files brought back"]),
        ("c", AFTER, ["5 blocks of the conversation left out"]),
    ],
)
async def test_a_rewind_does_what_it_showed_and_is_taken_back_by_undo(
    tmp_path: Path, key: str, files: dict[str, str], told_of: list[str]
) -> None:
    async with real_flight(tmp_path, TURNS, files={"a.txt": "before"}) as flight:
        await flight.run("make it one", "make it two")
        screen = await open_screen(flight)
        await to_second_task(flight, screen)
        await flight.press(key)
        await looked(flight, screen)
        text = flight.shown()
        assert ("5 blocks and 4 groups of the model's history are left out." in text) is (key != "f")
        assert ("~ change  a.txt" in text and "- delete  b.txt" in text) is (key != "c")
        assert content(flight) == AFTER, "looking changes nothing"
        await flight.press("enter")
        await flight.until(lambda: "/rewind undo takes it back" in flight.told())
        assert all(part in flight.told() for part in told_of)
        assert (content(flight), tasks(flight)) == (files, BOTH_TASKS if key == "f" else BOTH_TASKS[:1])

        await open_screen(flight, "/rewind undo")
        assert ("+ create  b.txt" in flight.shown()) is (key != "c")
        assert ("5 blocks and 4 groups of the model's history come back." in flight.shown()) is (key != "f")
        await flight.press("enter")
        await flight.until(lambda: "The rewind was taken back" in flight.told())
        assert (content(flight), tasks(flight)) == (AFTER, BOTH_TASKS)


async def test_escape_leaves_everything_as_it_is(tmp_path: Path) -> None:
    async with real_flight(tmp_path, TURNS) as flight:
        await flight.run("make it one", "make it two")
        before = flight.session.state
        screen = await open_screen(flight)
        await to_second_task(flight, screen)
        await flight.press("escape")
        await flight.until(lambda: isinstance(flight.app.screen, FlightScreen))
        assert flight.session.state is before
        assert content(flight) == AFTER
        assert flight.screen.focused is flight.screen.prompt


async def test_it_is_refused_in_words_while_a_run_goes_on(tmp_path: Path) -> None:
    asking = {"calls": [{"tool": "ask_operator", "args": {"question": "which?"}}]}
    async with real_flight(tmp_path, [asking, "done"]) as flight:
        await flight.session.submit("go")
        await flight.until(lambda: flight.session.state.escalation)
        await flight.screen.run_command("rewind")
        await flight.until(lambda: "Nothing can be rewound now: a run goes on." in flight.told())
        assert isinstance(flight.app.screen, FlightScreen)
        await flight.session.stop()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/rewind", "There is nothing to go back to"),
        ("/rewind nonsense", "Write /rewind, or /rewind undo."),
    ],
)
async def test_what_cannot_be_is_told_in_words(tmp_path: Path, line: str, words: str) -> None:
    async with real_flight(tmp_path, []) as flight:
        await flight.command(line)
        await flight.until(lambda: words in flight.told())
        assert isinstance(flight.app.screen, FlightScreen)


async def test_an_undo_without_a_rewind_is_told_in_words(tmp_path: Path) -> None:
    async with real_flight(tmp_path, TURNS) as flight:
        await flight.run("make it one")
        await flight.command("/rewind undo")
        await flight.until(lambda: "There is no rewind to take back" in flight.told())


async def test_a_run_that_an_earlier_process_left_open_can_be_stopped_and_then_rewound(
    tmp_path: Path,
) -> None:
    async with real_flight(tmp_path, TURNS) as flight:
        await flight.run("make it one")
        folder = flight.session.folder
    journal = folder / "events.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    ended = next(place for place, line in enumerate(lines) if b'"type":"iteration_finished"' in line)
    journal.write_bytes(b"".join(lines[: ended + 1]))
    async with real_flight(tmp_path, TURNS, resume=folder) as flight:
        await flight.command("/rewind")
        await flight.until(lambda: "Stop it first with /stop." in flight.told())
        await flight.command("/stop")
        await flight.until(lambda: not flight.session.state.running)
        assert flight.session.state.run.outcome is e.Outcome.INTERRUPTED
        assert flight.session.state.metrics.model_calls == 1, "nothing was done before it ended"
        await open_screen(flight)


async def test_files_that_changed_behind_the_preview_are_shown_before_anything_is_done(
    tmp_path: Path,
) -> None:
    async with real_flight(tmp_path, TURNS) as flight:
        await flight.run("make it one", "make it two")
        screen = await open_screen(flight)
        await to_second_task(flight, screen)
        (flight.workspace / "c.txt").write_text("made by somebody else")
        await flight.press("enter")
        await flight.until(lambda: "- delete  c.txt" in flight.shown())
        assert (flight.workspace / "c.txt").exists()
        assert flight.app.screen is screen
        await flight.press("enter")
        await flight.until(lambda: "3 files brought back" in flight.told())
        assert content(flight) == BEFORE


async def test_a_point_after_which_nothing_came_is_not_gone_back_to(tmp_path: Path) -> None:
    async with real_flight(tmp_path, TURNS) as flight:
        await flight.run("make it one", "make it two")
        screen = await open_screen(flight)
        await flight.press("f")
        await looked(flight, screen)
        seq = flight.session.state.seq
        await flight.press("enter")
        await flight.until(lambda: "Nothing would change here" in flight.told())
        assert (flight.app.screen, flight.session.state.seq) == (screen, seq)


async def test_the_mouse_chooses_points_scopes_and_hints(tmp_path: Path) -> None:
    async with real_flight(tmp_path, TURNS) as flight:
        await flight.run("make it one", "make it two")
        screen = await open_screen(flight)
        ways = screen.query_one(WayList)
        place = next(number for number, way in enumerate(ways.ways) if "make it two" in way.label)
        await flight.pilot.click(WayList, offset=(20, place))
        await looked(flight, screen)
        assert ways.cursor == place
        await flight.pilot.click("OptionRow", offset=(12, 0))
        await looked(flight, screen)
        assert screen.scope == "conversation"
        await flight.pilot.click("RewindScreen KeyHints", offset=(2, 0))
        await flight.until(lambda: "5 blocks of the conversation left out" in flight.told())
        assert (content(flight), tasks(flight)) == (AFTER, ["make it one"])


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60), (40, 12)])
async def test_a_long_list_of_files_stays_in_its_place_and_can_be_read_to_its_end(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    many = command("for i in $(seq 100 199); do echo x > file_$i.txt; done")
    async with real_flight(tmp_path, [many, "done"], size=size) as flight:
        await flight.run("make many")
        screen = await open_screen(flight)
        await flight.press("end")
        await looked(flight, screen)
        assert "Enter go back" in flight.shown()
        preview = screen.query_one(Preview)
        assert preview.overflows
        for _ in range(60):
            await flight.press("pagedown")
        assert "file_199.txt" in flight.shown()
        assert "Enter go back" in flight.shown()
        await flight.press("escape")


def test_names_of_files_are_spelled_out_in_one_line_each() -> None:
    changes = (FileChange("create", "evil\x1b[2J\nname"), FileChange("delete", "a\u202eb"))
    plan = RewindPlan("files", RewindPoint(3, 0.0, "before: x", "ref"), files=changes)
    shown = "\n".join(
        "".join(span.text for span in line)
        for line in Preview(list(passages_of(plan, "/w\x1b[0m"))).draw(100, 40)
    )
    assert "\x1b" not in shown
    assert "+ create  evil␛[2J␊name" in shown
    assert "- delete  a‹U+202E›b" in shown


async def test_the_palette_offers_both_going_back_and_taking_it_back(tmp_path: Path) -> None:
    async with real_flight(tmp_path, TURNS) as flight:
        await flight.run("make it one")
        await flight.press("ctrl+p")
        await flight.press(*"rewind")
        await flight.until(lambda: "rewind [undo]" in flight.shown() and "rewind undo" in flight.shown())
        await flight.press("enter")
        await flight.until(lambda: flight.app.screen.__class__.__name__ != "CommandPalette")
        await flight.opens(RewindScreen)
