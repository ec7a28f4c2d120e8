"""A command is its class and a line in the list: completion, help, both consoles, the palette and the document know it.
The commands here are carried out without a console, by a host that keeps what they say.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.console.live_harness import live
from tests.console.terminal import ROOT
from tests.frontend.scripted_host import ScriptedHost
from tests.runtime.session_harness import start_session
from tests.runtime.test_images import png
from tui_agent.console.screens.help import sections
from tui_agent.console.screens.palette import entries
from tui_agent.core.events import BackgroundStarted, RunStarted
from tui_agent.frontend.commands import registry
from tui_agent.frontend.commands.command import Command
from tui_agent.frontend.commands.dispatch import UnknownCommandError, parse
from tui_agent.frontend.commands.host import Host
from tui_agent.plain.commands import PlainHost


class Shout(Command[Host]):
    """Thrown away with the test."""

    name = "shout"
    help = "Say a word loudly"
    argument = "WORD"
    values = ("now", "later")

    async def do(self, host: Host, argument: str) -> str:
        if argument == "never":
            raise ValueError("Nobody shouts that.")
        return f"{argument.upper()}! ({host.shown.settings.policy})"


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.BY_NAME, "shout", Shout())


def test_completion_and_parsing_know_it() -> None:
    names = registry.suggestions("/sho", lambda command: command.values)
    assert ("/shout ", "/shout WORD", "Say a word loudly") in names
    values = registry.suggestions("/shout l", lambda command: command.values)
    assert [each.text for each in values] == ["/shout later"]
    with pytest.raises(
        UnknownCommandError, match=r"/shout needs an argument: /shout WORD\. Say a word loudly"
    ):
        parse("/shout")
    with pytest.raises(UnknownCommandError, match=r"Did you mean /shout\?"):
        parse("/shoot now")


def test_the_document_lists_it() -> None:
    found = importlib.util.spec_from_file_location("write_commands", ROOT / "docs" / "write_commands.py")
    assert found is not None
    assert found.loader is not None
    script = importlib.util.module_from_spec(found)
    found.loader.exec_module(script)
    row = "| `/shout WORD` |  | Say a word loudly | both |\n"
    assert row in script.page()
    assert script.page().replace(row, "") == script.TARGET.read_text("utf-8"), "run docs/write_commands.py"


async def test_the_console_helps_with_it_offers_it_and_does_it() -> None:
    async with live((100, 60)) as console:
        offered = [(row.label, row.complete) for row in entries(console.screen) if row.name == "shout"]
        assert offered == [("shout WORD", False), ("shout now", True), ("shout later", True)]
        for line, said in (("/shout now", "NOW! (combined)"), ("/shout never", "Nobody shouts that.")):
            await console.say(line)
            await console.until(lambda said=said: said in console.remarks())
    listed = {row for _, rows in sections() for row in rows}
    assert any("/shout WORD" in left and "Say a word loudly" in right for left, right in listed)


class Paper:
    """What a console in lines writes on."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.work: list[Coroutine[Any, Any, None]] = []
        self.paper = self

    def line(self, text: str) -> None:
        self.written.append(text)

    def lines(self, lines: Any, indent: str = "") -> None:
        self.written += lines

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        self.work.append(work)


async def test_lines_help_with_it_and_do_it(tmp_path: Path) -> None:
    live_session = await start_session(tmp_path, ["done"])
    console: Any = Paper()
    host = PlainHost(console, live_session.session)
    for line in ("/shout now", "/shout never", "/help", "/theme"):
        host.run_line(line)
        while console.work:
            await console.work.pop()
    await live_session.close()
    assert {"NOW! (combined)", "Nobody shouts that.", "  /shout WORD: Say a word loudly"} <= set(
        console.written
    )
    assert "/theme is for the screen; /help lists what there is in lines." in console.written


@pytest.mark.parametrize("works", ["wl-paste", "xclip", "neither"])
async def test_an_image_comes_from_the_clipboard_by_whichever_tool_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: str
) -> None:
    """Also if the first tool is there and fails, as `wl-paste` does without Wayland."""
    (tmp_path / "image").write_bytes(png())
    for tool in ("wl-paste", "xclip"):
        script = f"cat {tmp_path / 'image'}" if tool == works else "echo no such target; exit 1"
        (tmp_path / tool).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / tool).chmod(0o755)
    for name, value in {"PATH": f"{tmp_path}:/bin:/usr/bin", "WAYLAND_DISPLAY": "w", "DISPLAY": ":9"}.items():
        monkeypatch.setenv(name, value)
    live_session = await start_session(tmp_path, ["done"])
    host = ScriptedHost(live_session.session)
    said = await host.typed("/image")
    if works == "neither":
        assert said[0].startswith("No image was found in the clipboard")
        assert host.prompt == ""
    else:
        assert said == []
        assert Path(host.prompt.strip()).read_bytes() == png()
        await live_session.run(f"What is this? {host.prompt}")
        (started,) = live_session.of(RunStarted)
        assert [image.media for image in started.images] == ["image/png"]
    await live_session.close()


async def test_commands_are_done_for_a_host_that_is_a_script(tmp_path: Path) -> None:
    live_session = await start_session(
        tmp_path, ["done"], profiles={"careful": {"model": "scripted:breaker"}}
    )
    host, session = ScriptedHost(live_session.session), live_session.session
    assert await host.typed("/shout later") == ["LATER! (combined)"]
    assert await host.typed("/profile careful") == ["The next call goes to the profile careful."]
    assert session.state.session.model == "careful"
    assert await host.typed("/profile other") == ["There is no profile 'other'. There are careful."]
    session.recorder.record(BackgroundStarted(id="b1", command="sleep 9", output_file="x"))
    there = "There is no command 'b3' in the background; running: b1."
    assert await host.typed("/background stop b3") == [there]
    await live_session.run("first")
    (point,) = session.rewinding.points()
    host.answers.append(await session.rewinding.plan(point, "conversation"))
    (said,) = await host.typed("/undo")
    assert said.startswith("Rewound to “before: first”")
    assert host.prompt == "first"
    await host.typed("/status")
    assert any("combined" in line for line in host.reports["Status"])
    await live_session.close()
