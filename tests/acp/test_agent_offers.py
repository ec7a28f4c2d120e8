"""What another agent offers: its modes, options and commands reach the operator, and our MCP servers reach it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acp.other_agent import LIMIT, Die, Message, OtherAgent, Person, called, ended, say, session_with
from tests.frontend.scripted_host import ScriptedHost
from tui_agent.acp_client.offers import Offers
from tui_agent.core import events
from tui_agent.frontend.commands import agent_commands
from tui_agent.frontend.commands.registry import BY_NAME, suggestions
from tui_agent.runtime.operator import ServerReply
from tui_agent.session.session import Session
from tui_agent.store.mcp_trust import McpTrust

MODES: Message = {
    "currentModeId": "build",
    "availableModes": [
        {"id": "build", "name": "Build"},
        {"id": "https://modes/#plan", "name": "Plan", "description": "Reads only"},
    ],
}
MODELS: Message = {
    "currentModelId": "small",
    "availableModels": [{"modelId": "small", "name": "Small"}, {"modelId": "big", "name": "Big one"}],
}


def option(name: str, now: str, *values: str, category: str = "", group: bool = False) -> Message:
    listed: list[Message] = [{"value": value, "name": value.capitalize()} for value in values]
    told = {"id": name, "name": name.capitalize(), "category": category or name, "type": "select"}
    return {**told, "currentValue": now, "options": [{"group": "g", "options": listed}] if group else listed}


SET = "session/set_config_option"
OPTIONS = [
    option("mode", "build", "build", "plan"),
    option("model", "small", "small", "big", group=True),
    {"id": "web", "name": "Web", "type": "boolean", "currentValue": False},
]
COMMANDS: Message = {
    "sessionUpdate": "available_commands_update",
    "availableCommands": [
        {"name": "review", "description": "Review changes", "input": {"hint": "what"}},
        {"name": "memory show", "description": "", "input": None},
        {"name": "compact", "description": "Summarise"},
    ],
}


def offering(*turns: Any, **opens: Any) -> OtherAgent:
    agent = OtherAgent(*turns)
    agent.opens = {"sessionId": "theirs", **opens}
    agent.offers = [COMMANDS]
    return agent


async def started(session: Session, holds: Callable[[], Any] = lambda: True) -> None:
    """Start the agent before any prompt, and wait until it has told this."""
    session.warm_up()
    async with asyncio.timeout(LIMIT):
        while not (session.state.session.offered.commands and holds()):
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("opens", "command", "method", "params"),
    [
        ({"modes": MODES}, "/mode plan", "session/set_mode", {"modeId": "https://modes/#plan"}),
        ({"modes": MODES, "models": MODELS}, "/model Big one", "session/set_model", {"modelId": "big"}),
        ({"configOptions": OPTIONS, "modes": MODES}, "/mode", SET, {"configId": "mode", "value": "plan"}),
        ({"configOptions": OPTIONS}, "/model big", SET, {"configId": "model", "value": "big"}),
        ({"configOptions": OPTIONS}, "/agent web on", SET, {"configId": "web", "type": "boolean", "value": True}),
    ],
)  # fmt: skip
async def test_an_option_is_chosen_by_a_command_and_set_in_the_agent(
    tmp_path: Path, opens: Message, command: str, method: str, params: Message
) -> None:
    agent = offering(**opens)
    async with session_with(tmp_path, agent) as (session, heard):
        await started(session)
        said = await ScriptedHost(session).typed(command)
        assert "from now on" in said[0]
        assert agent.asked(method) == [{"sessionId": "theirs", **params}]
        [chosen] = [event for event in heard if isinstance(event, events.AgentOptionChosen)]
        now = session.state.session.offered.option(chosen.option)
        assert now is not None
        assert now.value == chosen.value


async def test_an_option_is_picked_from_lists_that_say_what_holds_now(tmp_path: Path) -> None:
    agent = offering(configOptions=OPTIONS)
    async with session_with(tmp_path, agent) as (session, _):
        await started(session)
        await ScriptedHost(session, "model", "big").typed("/agent")
    assert [one["value"] for one in agent.asked("session/set_config_option")] == ["big"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/mode fly", "there is no mode fly; there are Build, Plan"),
        ("/agent colour red", "no option colour; its options are: mode, model, web"),
    ],
)
async def test_what_cannot_be_chosen_is_said_with_what_can(tmp_path: Path, line: str, said: str) -> None:
    async with session_with(tmp_path, offering(configOptions=OPTIONS)) as (session, _):
        await started(session)
        assert said in (await ScriptedHost(session).typed(line))[0]


async def test_an_agent_that_refuses_an_option_is_quoted_and_the_option_stays(tmp_path: Path) -> None:
    agent = offering(configOptions=OPTIONS)
    agent.answers["session/set_config_option"] = {"code": -32602, "message": "not with this plan"}
    async with session_with(tmp_path, agent) as (session, heard):
        await started(session)
        [said] = await ScriptedHost(session).typed("/model big")
        assert "not with this plan" in said
        now = session.state.session.offered.option("model")
        assert now is not None
        assert now.value == "small"
        assert not [event for event in heard if isinstance(event, events.AgentOptionChosen)]


async def test_what_was_chosen_holds_after_the_agent_has_died_and_in_a_session_that_is_resumed(
    tmp_path: Path,
) -> None:
    agent = offering([say("I"), Die()], [say("Done.")], configOptions=OPTIONS)
    async with session_with(tmp_path, agent) as (session, _):
        await started(session)
        await ScriptedHost(session).typed("/mode plan")
        await session.submit("Do it.")
        await asyncio.wait_for(session.wait(), LIMIT)
        folder = session.folder
    assert agent.starts == 2
    assert [one["value"] for one in agent.asked("session/set_config_option")] == ["plan", "plan"]
    again = offering([say("More.")], configOptions=OPTIONS)
    async with session_with(tmp_path, again, resume=folder) as (session, _):
        await session.submit("Go on.")
        await asyncio.wait_for(session.wait(), LIMIT)
    assert [one["value"] for one in again.asked("session/set_config_option")] == ["plan"]


async def test_what_the_agent_changes_itself_is_known_at_any_time(tmp_path: Path) -> None:
    agent = offering(modes=MODES)
    async with session_with(tmp_path, agent) as (session, _):
        await started(session)
        agent.update({"sessionUpdate": "current_mode_update", "currentModeId": "https://modes/#plan"})

        def named() -> str:
            option = session.state.session.offered.option("mode")
            return "" if option is None else option.named

        async with asyncio.timeout(LIMIT):
            while named() != "Plan":
                await asyncio.sleep(0)
        agent.update({"sessionUpdate": "config_option_update", "configOptions": OPTIONS})
        async with asyncio.timeout(LIMIT):
            while session.state.session.offered.option("web") is None:
                await asyncio.sleep(0)


async def test_its_commands_are_offered_and_go_to_it_as_they_stand(tmp_path: Path) -> None:
    agent = offering([say("Fine.")], [say("Shorter.")])
    async with session_with(tmp_path, agent) as (session, _):
        await started(session)
        offered = session.state.session.offered
        texts = [one.text for one in agent_commands.suggestions("/", offered)]
        assert texts == ["/review ", "/memory show", "/agent:compact"]
        assert agent_commands.prompt_of("/reviews all", offered) == ""
        for line, sent in (("/review the diff", "/review the diff"), ("/agent:compact", "/compact")):
            await Sending(session).typed(line)
            await asyncio.wait_for(session.wait(), LIMIT)
            assert agent.prompts[-1] == sent


class Sending(ScriptedHost):
    """Messages go to the session."""

    async def submit(self, text: str, typed: str | None, model: str, line: str) -> None:
        await self.session.submit(text, typed, model)


async def test_without_another_agent_its_commands_say_how_one_is_started(tmp_path: Path) -> None:
    async with session_with(tmp_path, OtherAgent()) as (session, _):
        session._agent = None
        for line in ("/mode", "/agent", "/agent mode plan"):
            assert "agent-tui --agent NAME" in (await ScriptedHost(session).typed(line))[0]


async def test_completion_has_the_values_that_there_are_now(tmp_path: Path) -> None:
    async with session_with(tmp_path, offering(configOptions=OPTIONS)) as (session, _):
        await started(session)
        host = ScriptedHost(session)
        for typed, found in (
            ("/mode p", ["/mode Plan"]),
            ("/model b", ["/model Big"]),
            ("/agent web", ["/agent web on", "/agent web off"]),
        ):
            assert [one.text for one in suggestions(typed, host.values_of)] == found
    assert BY_NAME["mode"].help


@pytest.mark.parametrize(
    "told",
    [
        {"configOptions": "x", "modes": 7, "models": [1]},
        {
            "configOptions": [
                1,
                {"id": 5},
                {"id": "a\x1b[2J"},
                {"id": "ok", "options": [{"value": ["no"]}, 3]},
            ]
        },
        {"configOptions": [{"id": "many", "options": [{"value": str(n)} for n in range(9_000)]}]},
    ],
)
def test_rubbish_is_no_offer(told: Message) -> None:
    offers = Offers()
    offers.begin(told)
    offers.update({"sessionUpdate": "available_commands_update", "availableCommands": [7, {"name": ["x"]}]})
    offers.update({"sessionUpdate": "current_mode_update", "currentModeId": {}})
    now = offers.now
    assert all(len(one.choices) <= 500 for one in now.options)
    assert "\x1b" not in now.model_dump_json()
    assert not now.commands


# --- MCP servers of ours --------------------------------------------------------------------------------------------

OF_THE_CHECKOUT = {
    "mcpServers": {
        "files": {"command": "mcp-files", "args": ["--ro"], "env": {"API_TOKEN": "${SECRET_OF_TEST}"}},
        "web": {"url": "https://example.org/mcp", "headers": {"X-Team": "a"}},
        "sub": {"command": "mcp-sub", "cwd": "sub"},
        "off": {"command": "mcp-off", "disabled": True},
    }
}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("SECRET_OF_TEST", "sesame-open-wide-1")
    work = tmp_path / "work"
    work.mkdir()
    (work / ".mcp.json").write_text(json.dumps(OF_THE_CHECKOUT))
    return work


class Agreeing(Person):
    """Agrees to servers, or does not."""

    def __init__(self, decision: Any) -> None:
        super().__init__()
        self.decision = decision
        self.consulted: list[events.ServerAsked] = []

    async def consult(self, asked: events.ServerAsked) -> ServerReply:
        self.consulted.append(asked)
        return ServerReply(self.decision)


async def _given(tmp_path: Path, agent: OtherAgent, person: Person) -> tuple[list[Message], str]:
    """The servers that an agent is given, and all that was written of the session."""
    async with session_with(tmp_path, agent, person, mcp=True) as (session, _):
        await session.submit("Do it.")
        await asyncio.wait_for(session.wait(), LIMIT)
        folder = session.folder
    [opened] = agent.asked("session/new")
    written = "".join(path.read_text() for path in folder.rglob("*.json*"))
    return opened["mcpServers"], written


async def test_servers_that_the_operator_agrees_to_are_given_to_the_agent_and_secrets_stay_out_of_files(
    tmp_path: Path, checkout: Path
) -> None:
    capable = {"agentCapabilities": {"mcpCapabilities": {"http": True}}}
    agent = OtherAgent(
        [called("a", command="env"), ended("a", "sesame-open-wide-1"), say("So.")], greeting=capable
    )
    person = Agreeing("accept")
    given, written = await _given(tmp_path, agent, person)
    files, web, sub = given
    assert files == {
        "name": "files",
        "command": "mcp-files",
        "args": ["--ro"],
        "env": [{"name": "API_TOKEN", "value": "sesame-open-wide-1"}],
    }
    assert web["type"] == "http"
    assert web["headers"] == [{"name": "X-Team", "value": "a"}]
    assert (sub["command"], sub["args"][2:]) == ("/bin/sh", [str(checkout / "sub"), "mcp-sub"])
    assert "outside of the sandbox" in person.consulted[0].message
    assert "sesame-open-wide-1" not in written
    assert McpTrust(tmp_path / "state", checkout)


@pytest.mark.parametrize("present", [True, False])
async def test_servers_of_a_checkout_that_nobody_agreed_to_are_not_given(
    tmp_path: Path, checkout: Path, *, present: bool
) -> None:
    agent, person = OtherAgent([say("So.")]), Agreeing("decline")
    person.present = present
    given, written = await _given(tmp_path, agent, person)
    assert given == []
    assert len(person.consulted) == (3 if present else 0)
    assert ("nobody has agreed" in written) is not present


async def test_a_server_with_an_address_is_kept_from_an_agent_that_reaches_none_and_that_is_said(
    tmp_path: Path, checkout: Path
) -> None:
    agent = OtherAgent([say("So.")])
    given, written = await _given(tmp_path, agent, Agreeing("accept"))
    assert [one["name"] for one in given] == ["files", "sub"]
    assert "it does not get web" in written
