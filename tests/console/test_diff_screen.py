"""The changes of a run: what is shown, side by side where there is room, file by file."""

from __future__ import annotations

import shutil
from difflib import unified_diff
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.console.real_session import real_live
from tests.console.waiting import picture, until
from tui_agent.console.program import ConsoleApp
from tui_agent.console.screens.diff import DiffScreen
from tui_agent.console.screens.replay import ReplayScreen
from tui_agent.frontend.arguments import ConsoleArguments
from tui_agent.frontend.lines.diff import draw_sides, draw_unified, file_diff, files_of
from tui_agent.frontend.lines.styled import text_of, width_of

EDIT = {
    "calls": [
        {"tool": "write_file", "args": {"path": "cart.py", "content": "def total(a, b):\n    return a\n"}}
    ]
}
MAKE = "echo made > 'by hand.md'; rm old.txt; printf '\\0' > b.bin"
COMMAND = {"calls": [{"tool": "bash", "args": {"command": MAKE}}]}
FINISH = {"calls": [{"tool": "finish", "args": {"answer": "done"}}]}
FILES = {"cart.py": "def total(a):\n    return a\n", "old.txt": "gone\n"}


async def test_the_changes_of_tools_and_commands_are_shown_file_by_file(tmp_path: Path) -> None:
    large = {"calls": [{"tool": "bash", "args": {"command": "seq 30000 > old.txt"}}]}
    turns = [EDIT, COMMAND, FINISH, FINISH, large, FINISH]
    async with real_live(tmp_path, turns, files=FILES, size=(160, 45)) as console:
        await console.run("change it")
        await console.say("/diff")
        await console.opens(DiffScreen)
        await console.until(lambda: "This file is not text." in console.shown())
        assert console.shown().splitlines()[-3].strip(" │") == "Esc close  ←→ file  ↑↓ read"
        await console.press("v")
        for name in ("b.bin", "by hand.md", "cart.py", "old.txt", "4 files  +2 −2"):
            assert name in console.shown()
        await console.press("right")
        await console.until(lambda: "+ made" in console.shown())
        await console.press("right")
        await console.until(lambda: "1 - def total(a):" in console.shown())
        row = next(line for line in console.shown().splitlines() if "1 - def total(a):" in line)
        assert "1 + def total(a, b):" in row
        assert "Esc close  ←→ file  ↑↓ read  v one column" in console.shown()
        await console.press("v")
        await console.until(lambda: row not in console.shown() and "1 + def total(a, b):" in console.shown())
        assert "v side by side" in console.shown()
        await console.pilot.resize_terminal(60, 20)
        await console.until(lambda: "side by side" not in console.shown())
        await console.press("v")
        await console.until(lambda: "wider terminal" in console.remarks())
        await console.press("right")
        await console.until(lambda: "1 - gone" in console.shown())
        await console.press("escape")
        await console.run("change nothing")
        await console.say("/diff")
        await console.until(lambda: "This run has changed no file." in console.remarks())
        await console.run("write much")
        await console.say("/diff")
        await console.opens(DiffScreen)
        await console.until(lambda: "10 + 10" in " ".join(console.shown().split()))


async def test_a_replay_shows_what_commands_changed_too_where_checkpoints_tell(tmp_path: Path) -> None:
    async with real_live(tmp_path, [EDIT, COMMAND, FINISH], files=FILES) as console:
        await console.run("change it")
        session_id = console.session.id
    (tmp_path / "workspace" / "later.txt").write_text("after the run")
    app = ConsoleApp(ConsoleArguments(overrides={"state_dir": tmp_path / "state"}, replay=session_id))
    async with app.run_test(size=(100, 30)) as pilot:
        screen = app.shown
        assert isinstance(screen, ReplayScreen)
        await until(pilot, lambda: screen.player is not None and screen.player.there)
        screen.action_edge(1)
        await until(pilot, lambda: screen.state is not None and screen.state.run.outcome is not None)
        screen.commands.run("diff")
        await until(pilot, lambda: isinstance(app.screen, DiffScreen) and "by hand.md" in picture(app))
        assert "Changes of this run" in picture(app)
        assert "later.txt" not in picture(app)
        await pilot.press("escape")
        shutil.rmtree(tmp_path / "state" / "checkpoints")
        screen.commands.run("diff")
        await until(pilot, lambda: isinstance(app.screen, DiffScreen) and "cart.py" in picture(app))
        assert "Changes by the file tools (not by commands)" in picture(app)
        assert "by hand.md" not in picture(app)


LINES = st.lists(
    st.sampled_from(["a", "b", "--- a/x", "+++ b/x", "@@ -1 +1 @@", "ä\twide 漢字 " * 9, ""]), max_size=12
)


@given(LINES, LINES, st.integers(30, 120))
def test_every_changed_line_is_drawn_once_and_fits(old: list[str], new: list[str], width: int) -> None:
    diff = "\n".join(unified_diff(old, new, "a/x", "b/x", lineterm=""))
    twice = f"diff --git a/x b/x\n{diff}\ndiff --git a/y b/y\n{diff}"
    files = files_of(twice)
    assert [file.name for file in files] == (["x", "y"] if not diff else ["x", "x"])
    joined = file_diff("x.py", f"{diff}\n{diff}")
    assert joined.added - joined.removed == 2 * (len(new) - len(old))
    for draw in (draw_sides, draw_unified):
        lines = draw(joined, width)
        assert all(width_of(line) <= width for line in lines)
        signs = "".join(span.text for line in lines for span in line if "bold" in span.style)
        assert (signs.count("+"), signs.count("-")) == (joined.added, joined.removed), text_of(lines[0])
