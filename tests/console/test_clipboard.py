"""What is copied is the text and not its drawing, and it is said what was copied and how."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.geometry import Offset
from textual.selection import Selection

from tests.console.live_harness import live
from tests.console.panes.stage import Stage, rows_of
from tests.console.panes.stories import Story, answered
from tui_agent.console.panes import ConversationPane
from tui_agent.console.panes.density import Density
from tui_agent.core.events import ReplyFinished, ToolCall, ToolProgress, ToolStarted
from tui_agent.frontend.clipboard import TERMINAL_LIMIT, copied, copy_by_tool


async def test_a_selection_holds_no_rules_bars_signs_or_folds() -> None:
    story = answered()
    story.run("List.").ask_model()
    (call,) = story.reply("A list:\n\n```python\nif x:\n    y = 1\n```", ("bash", {"command": "seq 50"}))
    story.succeed(call, "\n".join(f"line {number}" for number in range(50)))
    async with Stage(ConversationPane).run_test(size=(80, 100)) as pilot:
        app = pilot.app
        assert isinstance(app, Stage)
        app.show(story.state, story.now)
        await pilot.pause()
        pane = app.query_one(ConversationPane)
        pane.use_density(Density.FULL)
        await pilot.pause()
        found = pane.get_selection(Selection(Offset(0, 0), Offset(200, len(rows_of(pane)))))
    assert found is not None
    text = found[0]
    assert "if x:\n    y = 1\n" in text
    assert "A list:" in text.split("\n")
    assert "line 49" in text.split("\n")
    for drawn in ("──", "━━", "▏", "◆", "Enter or click"):
        assert drawn not in text
    assert not [line for line in text.split("\n") if line.lstrip().startswith("│")]


@pytest.mark.parametrize(("works", "says"), [(True, "xclip"), (False, "")])
async def test_the_first_tool_that_takes_the_text_is_named(tmp_path: Path, works: bool, says: str) -> None:
    target = tmp_path / "taken"
    tool = tmp_path / "xclip"
    tool.write_text(f'#!/bin/sh\ncat > "{target}"\n' if works else "#!/bin/sh\nexit 1\n")
    tool.chmod(0o755)
    env = {"DISPLAY": ":0", "PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert await copy_by_tool("a text", env) == says
    if works:
        assert target.read_text() == "a text"


def test_what_is_said_names_size_and_way() -> None:
    assert (
        copied("a\nb", "the block", "wl-copy")
        == "Copied the block, 2 lines: by wl-copy and the terminal (OSC 52)."
    )
    assert "does not say" in copied("abc", "the selection", "")
    assert "was not copied" in copied("x" * (TERMINAL_LIMIT + 1), "the block", "")


async def test_the_newest_reply_is_copied_whole_and_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "TMUX", "WSL_DISTRO_NAME"):
        monkeypatch.delenv(name, raising=False)
    story = Story().run("Go.").ask_model()
    story.reply("answer \x1b]52;c;x\x07 here\n\n| a | b |\n|---|---|\n| 1 | 2 |")
    async with live() as console:
        console.session.state = story.state
        await console.say("/copy")
        await console.until(lambda: "Copied" in console.remarks())
        assert console.app.clipboard == "answer  here\n\n| a | b |\n|---|---|\n| 1 | 2 |"


async def test_what_a_running_call_wrote_so_far_is_copied() -> None:
    async with live() as console:
        console.session.start()
        call = ToolCall(id="c1", name="bash", arguments="")
        console.session.record(
            ReplyFinished(text="", model="m", calls=(call,)),
            ToolStarted(call_id="c1", tool="bash", input={"command": "make"}),
            ToolProgress(call_id="c1", text="half of it"),
        )
        await console.until(lambda: "half of it" in console.shown())
        pane = console.screen.query_one(ConversationPane)
        pane.focus()
        await console.press("up", "c")
        await console.until(lambda: console.app.clipboard == "half of it")
