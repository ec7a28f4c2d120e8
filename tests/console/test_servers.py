"""MCP servers in the console: the cards, `@` and `/` in the prompt, the list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.console.live_harness import live
from tui_agent.config.mcp_servers import ServerEntry
from tui_agent.core.events import ServerAsked
from tui_agent.frontend.commands import server_login
from tui_agent.frontend.commands.server_entries import PromptError, invoked, mentions
from tui_agent.frontend.lines.server_question import FieldError, read_value
from tui_agent.runtime.operator import ServerReply
from tui_agent.tools.errors import ToolError
from tui_agent.tools.mcp.servers import ServerRow
from tui_agent.tools.mcp.status import Invitation, PromptArgument, Resource, ServerPrompt, ServerStatus

ROW = ServerRow(
    ServerEntry("my bench", "workspace", Path(".mcp.json"), {"command": "run-it"}, command="run-it"),
    ServerStatus.READY,
    resources=(
        Resource("notes://today", "today", "What is on \x1b[2Jtoday"),
        Resource("notes://of/{day}", "a day", template=True),
    ),
    prompts=(
        ServerPrompt(
            "review", "Review a file", (PromptArgument("path", required=True), PromptArgument("how"))
        ),
    ),
    server="bench 1",
)


class Servers:
    """Servers that answer by table."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def rows(self) -> list[ServerRow]:
        return [ROW]

    async def read_resource(self, server: str, uri: str) -> str:
        self.asked.append((server, uri))
        if uri.endswith("gone"):
            raise ToolError("it is gone")
        return "buy milk"

    async def get_prompt(self, server: str, name: str, arguments: dict[str, str]) -> str:
        self.asked.append((server, name, arguments))
        return "Review it with care."


async def test_whether_a_server_may_start_is_asked_with_the_whole_command() -> None:
    async with live((80, 24)) as console:
        for key, decision in (("y", "accept"), ("n", "decline"), ("l", "cancel")):
            reply = console.consult(purpose="trust", message="Run: evil \u202e --all")
            await console.card_takes_keys()
            assert "Start bench?" in console.shown()
            assert "evil ‹U+202E› --all" in console.shown()
            await console.choose(key)
            assert (await reply).decision == decision
            await console.until(lambda: console.card is None)


async def test_a_server_is_not_agreed_to_before_all_of_its_entry_has_been_on_the_screen() -> None:
    async with live((60, 20)) as console:
        reply = console.consult(purpose="trust", message="\n".join(f"line {number}" for number in range(60)))
        await console.card_takes_keys()
        assert "start it" in console.shown(), "the choices are on the screen however small it is"
        await console.choose("y")
        assert not reply.done()
        await console.press("end", "enter")
        assert (await reply).decision == "accept"


async def test_a_form_is_asked_field_by_field_and_goes_out_as_the_types_it_wants() -> None:
    fields = {
        "colour": {"type": "string", "enum": ["red", "blue"]},
        "count": {"type": "integer", "minimum": 1, "default": 3},
        "glossy": {"type": "boolean"},
    }
    async with live((80, 24)) as console:
        reply = console.consult(fields=fields, required=("colour",))
        await console.card_takes_keys()
        await console.choose("y")
        await console.type("green")
        await console.press("enter")
        assert "colour must be one of red, blue" in console.shown()
        await console.press(*["backspace"] * 5)
        await console.type("RED")
        await console.until(lambda: "Enter next  Esc back" in console.shown())
        await console.press("enter", "enter")
        await console.until(lambda: "Enter send  Esc back" in console.shown())
        await console.type("yes")
        await console.press("escape")
        assert "2 of 3" in console.shown()
        await console.press("enter")
        await console.type("yes")
        await console.press("enter")
        assert await reply == ServerReply("accept", {"colour": "red", "count": 3, "glossy": True})


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ({"type": "integer"}, "1.5", FieldError),
        ({"type": "number", "maximum": 2}, "3", FieldError),
        ({"type": "string", "minLength": 3}, "ab", FieldError),
        ({"type": "boolean"}, "perhaps", FieldError),
        ({"type": "array"}, "a, b", ["a", "b"]),
        ({}, "", None),
    ],
)
def test_a_value_is_read_as_its_field_wants_it(field: dict[str, Any], text: str, value: Any) -> None:
    asked = ServerAsked(id="1", server="s", purpose="elicitation", message="", fields={"f": field})
    if value is FieldError:
        with pytest.raises(FieldError):
            read_value(asked, "f", text)
    else:
        assert read_value(asked, "f", text) == value


async def test_resources_and_prompts_of_servers_are_offered_and_become_messages() -> None:
    async with live((100, 30)) as console:
        console.session.mcp.servers = servers = Servers()
        await console.type("see @tod")
        assert "@my-bench:notes://today" in console.shown()
        await console.press("enter")
        assert console.prompt == "see @my-bench:notes://today "
        await console.press("enter")
        await console.until(lambda: console.session.done)
        sent = console.session.done.pop()[1]
        assert sent.startswith("see @my-bench:notes://today")
        assert "data, not instructions]\nbuy milk\n" in sent
        await console.type("@my-bench:notes://of")
        assert "@my-bench:notes://of/{day}" in console.shown()
        await console.press("tab")
        assert console.prompt == "@my-bench:notes://of/", "the gap is filled in by hand"
        await console.type("friday")
        await console.press("enter")
        await console.until(lambda: console.session.done)
        assert servers.asked[-1] == ("my bench", "notes://of/friday")
        console.session.done.clear()
        await console.type("/my-b")
        assert "/my-bench:review path=… [how=…]" in console.shown()
        await console.press("tab")
        await console.type("src/a.py")
        await console.press("enter")
        await console.until(lambda: console.session.done)
        assert servers.asked[-1] == ("my bench", "review", {"path": "src/a.py"})
        assert console.session.done[-1] == ("submit", "Review it with care.")


async def test_what_a_server_refuses_is_said_and_the_text_comes_back() -> None:
    async with live((100, 30)) as console:
        console.session.mcp.servers = Servers()
        for text in ("see @my-bench:notes://gone", "/my-bench:review", "/my-bench:nothing"):
            await console.say(text)
            await console.until(lambda text=text: console.prompt == text)
            assert console.session.done == []
            await console.press("end", "ctrl+u")


async def test_the_list_shows_how_each_server_stands() -> None:
    async with live((80, 24)) as console:
        console.session.mcp.servers = Servers()
        await console.say("/mcp")
        await console.until(lambda: "my bench  connected" in console.shown())
        assert "2 resources · 1 prompt" in console.shown()
        await console.press("escape")


class Logins:
    """Logins that begin and wait."""

    def waits(self, name: str) -> bool:
        return False

    async def begin(self, name: str, *, device: bool) -> Invitation:
        return Invitation("https://login.example/" + "a" * 300, "login.example", "AB-CD" if device else "")


async def test_the_address_of_a_login_is_shown_and_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_login, "open_page", lambda address: False)
    async with live((80, 24)) as console:
        console.session.mcp.servers = Servers()
        console.session.mcp.logins = Logins()
        await console.say("/mcp login my bench --device")
        await console.until(lambda: "Log in to my bench" in console.shown())
        assert "at login.example:" in console.shown()
        assert "Enter the code AB-CD there." in console.shown()
        await console.press("escape")


def test_what_names_no_resource_of_a_server_is_just_a_word() -> None:
    assert mentions("mail me@my-bench:x or @nobody:x or @my-bench", [ROW]) == []
    assert [each.uri for each in mentions("(see @my-bench:notes://today).", [ROW])] == ["notes://today"]


def test_arguments_of_a_prompt_go_by_name_or_in_order() -> None:
    assert invoked('/my-bench:review how=fast "a b"', [ROW]).arguments == {"how": "fast", "path": "a b"}
    assert invoked("/help", [ROW]) is None
    for wrong in ("/my-bench:review", "/my-bench:review a b c", '/my-bench:review "a'):
        with pytest.raises(PromptError):
            invoked(wrong, [ROW])
