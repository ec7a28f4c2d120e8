"""`agent-tui acp` as a process: a client of the SDK, a client that leaves, what is printed where."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from acp import PROTOCOL_VERSION, schema, spawn_agent_process, text_block
from jsonschema import Draft202012Validator

from tests.acp.editor import LIMIT
from tui_agent import __version__
from tui_agent.cli import acp

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "packaging" / "acp"
TEXT, SAID = {"type": "string"}, {"type": "string", "minLength": 1}
PACKAGE = {
    "type": "object",
    "required": ["package"],
    "properties": {
        "package": SAID,
        "args": {"type": "array", "items": TEXT},
        "env": {"type": "object", "additionalProperties": TEXT},
    },
    "additionalProperties": False,
}
ENTRY = Draft202012Validator(
    {
        "type": "object",
        "required": ["id", "name", "version", "description", "distribution"],
        "properties": {
            "id": {"type": "string", "pattern": r"^[a-z][a-z0-9-]*$"},
            "name": SAID,
            "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+"},
            "description": SAID,
            "license": TEXT,
            "icon": TEXT,
            "distribution": {
                "type": "object",
                "minProperties": 1,
                "properties": {"uvx": PACKAGE, "npx": PACKAGE},
                "additionalProperties": False,
            },
        },
        "additionalProperties": False,
    }
)
"""What the registry of agents takes (its agent.schema.json at 172d503), without fields that ours lacks."""
SCENARIO = """
title = "Over the protocol"
description = "An approval, a long command."
task = "-"
[[turns]]
calls = [{ tool = "bash", args = { command = "echo begun; echo $$ > pid; exec sleep 300" } }]
[[turns]]
text = "Back."
"""


class Client:
    """Allows everything once, and keeps what it is told."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.ran = asyncio.Event()

    def on_connect(self, _: Any) -> None: ...

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        if "begun" in str(getattr(update, "content", "")):
            self.ran.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[schema.PermissionOption], **_: Any
    ) -> schema.RequestPermissionResponse:
        chosen = schema.AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return schema.RequestPermissionResponse(outcome=chosen)


@pytest.mark.process
async def test_the_sdks_client_works_with_it_and_nothing_outlives_the_client(tmp_path: Path) -> None:
    scenario, work, state = tmp_path / "s.toml", tmp_path / "work", tmp_path / "state"
    scenario.write_text(SCENARIO)
    work.mkdir()
    options = ["--model", f"scripted:{scenario}", "--state-dir", str(state), "--sandbox", "off"]
    client = Client()
    errors = (tmp_path / "errors").open("wb")
    async with (
        asyncio.timeout(LIMIT),
        spawn_agent_process(
            client,
            sys.executable,
            *("-m", "tui_agent", "acp", *options),
            env={"PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(tmp_path)},
            transport_kwargs={"stderr": errors.fileno()},
        ) as (agent, process),
    ):
        await agent.initialize(PROTOCOL_VERSION, schema.ClientCapabilities())
        session = (await agent.new_session(str(work), mcp_servers=[])).session_id
        turn = asyncio.ensure_future(agent.prompt(session, [text_block("go")]))
        await client.ran.wait()
        await agent.cancel(session)
        assert (await turn).stop_reason == "cancelled"
        assert (await agent.prompt(session, [text_block("again")])).stop_reason == "end_turn"
        turn = asyncio.ensure_future(agent.prompt(session, [text_block("/status")]))
        assert (await turn).stop_reason == "end_turn"
    assert process.returncode == 0
    assert not Path("/proc", (work / "pid").read_text().strip()).exists()
    errors.close()
    assert (tmp_path / "errors").read_text() == ""
    journal = state / "sessions" / session / "events.jsonl"
    assert json.loads(journal.read_text().splitlines()[-1])["type"] == "run_finished"


@pytest.mark.process
async def test_requests_in_a_file_are_answered_into_a_file(tmp_path: Path) -> None:
    """As a person tries it by hand."""
    here = {"cwd": str(tmp_path), "mcpServers": []}
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": here},
        {"jsonrpc": "2.0", "id": 3, "method": "session/new", "params": here | {"cwd": "here"}},
    ]
    (tmp_path / "in").write_text("\n".join(map(json.dumps, requests)))
    with (tmp_path / "in").open("rb") as given, (tmp_path / "out").open("wb") as taken:
        done = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tui_agent", "acp", "--state-dir", str(tmp_path / "state")),
            stdin=given,
            stdout=taken,
            cwd=ROOT,
            env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config"), "AGENT_TUI_MODEL": ""},
        )
        assert await asyncio.wait_for(done.wait(), LIMIT) == 0
    answers = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    found = {one["id"]: one for one in answers if "id" in one}
    assert found[1]["result"]["protocolVersion"] == 1
    assert found[2]["result"]["sessionId"]
    assert "absolute" in found[3]["error"]["message"]


def test_the_entry_for_the_registry_fits_what_is_built() -> None:
    """The registry's rules: one version everywhere, and an icon in the colour of its surroundings."""
    entry = json.loads((FOLDER / "agent.json").read_text())
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
    ENTRY.validate(entry)
    assert entry["version"] == project["version"] == __version__
    assert entry["distribution"] == {"uvx": {"package": f"{project['name']}=={__version__}"}}
    assert project["dependencies"] == [f"tui-agent[acp,keyring]=={__version__}"]
    icon = (FOLDER / "icon.svg").read_text()
    assert 'width="16" height="16"' in icon
    colours = {part.partition('"')[0] for key in ("fill", "stroke") for part in icon.split(f'{key}="')[1:]}
    assert colours == {"none", "currentColor"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": "Agent TUI"},
        {"version": "1"},
        {"description": ""},
        {"distribution": {}},
        {"distribution": {"uvx": {"package": "x", "command": "y"}}},
        {"distribution": {"pip": {"package": "x"}}},
        {"auth": "terminal"},
    ],
)
def test_an_entry_that_the_registry_would_not_take_is_told_from_ours(wrong: dict[str, Any]) -> None:
    assert not ENTRY.is_valid(json.loads((FOLDER / "agent.json").read_text()) | wrong)


def test_a_login_takes_a_key_into_the_keyring_and_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    kept: dict[str, str] = {}
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("AGENT_TUI_MODEL", raising=False)
    monkeypatch.setattr("tui_agent.keychain.keep", kept.__setitem__)
    monkeypatch.setattr("getpass.getpass", lambda _: " sk-1 ")
    assert acp.main(["--login", "anthropic"]) == 0
    assert acp.main(["--model", "mistral/large", "--login"]) == 0
    assert kept == {"ANTHROPIC_API_KEY": "sk-1", "MISTRAL_API_KEY": "sk-1"}
    assert "keyring" in capsys.readouterr().out
    monkeypatch.setattr("getpass.getpass", lambda _: "")
    with pytest.raises(acp.UsageError, match="no key was given"):
        acp.main(["--login", "openai"])
