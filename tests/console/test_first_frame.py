"""The first frame: outlines that look like what takes their place, and input that comes before there is a prompt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.console.live_harness import HandConsole, HandSession
from tests.console.terminal import Terminal
from tests.console.test_terminal_input import ANSWERING, tasks
from tui_agent.console.looks.hints import KeyHints
from tui_agent.console.looks.splash import PromptOutline
from tui_agent.console.prompt.prompt import Prompt


class HeldConsole(HandConsole):
    """Does nothing after its first frame."""

    async def open_first_session(self) -> None:
        pass


def frame(app: HeldConsole) -> list[list[tuple[str, str]]]:
    """The lines of the screen as texts with their styles."""
    strips = app.screen._compositor.render_strips()
    return [[(segment.text, str(segment.style)) for segment in strip.simplify()] for strip in strips]


@pytest.mark.parametrize(
    ("size", "env"),
    [
        *((size, {}) for size in [(120, 40), (30, 20), (44, 11), (30, 11)]),
        *(
            ((60, 20), {"AGENT_TUI_THEME": theme})
            for theme in ("agent-light", "terminal", "textual-light", "ansi-dark", "ansi-light")
        ),
        ((60, 20), {"NO_COLOR": "1"}),
        ((60, 20), {"NO_COLOR": "1", "AGENT_TUI_THEME": "terminal"}),
    ],
)
async def test_the_prompt_takes_the_place_of_its_outline_unseen(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], env: dict[str, str]
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    app = HeldConsole(HandSession())
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        assert app.screen.query(PromptOutline)
        before = frame(app)
        tab = await app.open_first_tab()
        await pilot.pause()
        assert app.screen is tab
        assert isinstance(app.focused, Prompt)
        after = frame(app)
        if tab.query_one(KeyHints).display:
            assert "F1 help" in "".join(text for text, _ in after.pop())
            before.pop()
        assert after == before


@pytest.mark.process
def test_what_is_typed_before_the_first_frame_arrives_in_order(
    start: Callable[..., Terminal], tmp_path: Path
) -> None:
    scenario = tmp_path / "answers.toml"
    scenario.write_text(ANSWERING)
    terminal = start("-m", "tui_agent", "--model", f"scripted:{scenario}", "--workspace", str(tmp_path))
    terminal.until(
        lambda: b"\x1b[?2004h" in terminal.output
    )  # from here on the terminal passes on each key as it is
    terminal.send(
        "slip\x7fp \x1b[200~pasted\rtext\x1b[201~ end\x1b[D\x1b[D\x1b[DX\x05\x1b\rmore\rand the next"
    )
    sent = "slip pasted\ntext Xend\nmore"
    terminal.until(lambda: tasks(tmp_path / "state") == [sent])
    terminal.shows("and the next", "DONE")
    terminal.send("\r")
    terminal.until(lambda: tasks(tmp_path / "state") == [sent, "and the next"])
