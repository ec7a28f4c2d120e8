"""Which servers are configured, what is wrong with an entry, and what an operator is shown before agreeing to one."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tui_agent.config.mcp_servers import ConfiguredServers, ServerEntryError, load_servers, write_entry
from tui_agent.store.mcp_trust import McpTrust

ENVIRONMENT = {"TOKEN": "tok-0123456789", "HOST": "example.org", "EMPTY": ""}


def configured(folder: Path, servers: Any, own: Any = None) -> ConfiguredServers:
    (folder / ".mcp.json").write_text(
        servers if isinstance(servers, str) else json.dumps({"mcpServers": servers})
    )
    user = folder / "user.json"
    if own is not None:
        user.write_text(json.dumps({"mcpServers": own}))
    return load_servers(folder, ENVIRONMENT, user)


def test_variables_are_expanded_as_others_do_and_only_their_names_are_shown(tmp_path: Path) -> None:
    entry = configured(tmp_path, {
        "web": {
            "type": "http", "url": "https://${HOST}/mcp",
            "headers": {"Authorization": "Bearer ${TOKEN}", "X": "${NO:-1}"},
        }
    }).entries[0]  # fmt: skip
    assert entry.url == "https://example.org/mcp"
    assert entry.headers == {"Authorization": "Bearer tok-0123456789", "X": "1"}
    assert entry.variables == ("HOST", "NO", "TOKEN")
    assert entry.secrets == {"web.Authorization": "tok-0123456789"}
    shown = "\n".join([entry.shown, *entry.details])
    assert "https://${HOST}/mcp" in shown
    assert "tok-" not in shown


def test_a_password_in_an_address_is_neither_shown_nor_kept(tmp_path: Path) -> None:
    url = "https://me:pw-123456@example.org/mcp?api_key=key-123456&page=2"
    entry = configured(tmp_path, {"a": {"url": url}}).entries[0]
    assert entry.shown == "https://(credentials)@example.org/mcp?api_key=(not shown)&page=2"
    assert entry.secrets == {"a.password": "pw-123456", "a.api_key": "key-123456"}


def test_a_literal_secret_of_an_entry_is_not_shown(tmp_path: Path) -> None:
    entry = configured(
        tmp_path, {"a": {"command": "x", "env": {"API_KEY": "abc-123456", "MODE": "fast"}}}
    ).entries[0]
    assert "abc-123456" not in " ".join(entry.details)
    assert "variable MODE: fast" in entry.details
    assert entry.secrets == {"a.API_KEY": "abc-123456"}


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ({}, 'it needs a "command"'),
        ({"command": ["a"]}, "command must be a text"),
        ({"command": "a", "args": "b"}, "args must be a list of texts"),
        ({"command": "a", "env": {"A": 1}}, "env must be an object of texts"),
        ({"command": "a\0b"}, "NUL"),
        ({"type": "sse", "url": "http://x"}, "obsolete"),
        ({"type": "carrier"}, 'type must be "stdio" or "http"'),
        ({"url": "ftp://x"}, "url must be an address"),
        ({"url": "http://x:99999"}, "url must be an address"),
        ({"url": "http://x", "headers": {"A": "b\r\nC: d"}}, "no header may"),
        ({"url": "http://${NOT_SET}"}, "needs the variable NOT_SET"),
        ({"command": "a", "timeout": "5"}, "timeout is a number of milliseconds"),
        ("text", "it must be an object"),
    ],
)
def test_an_entry_that_cannot_be_used_is_named_and_costs_only_itself(
    tmp_path: Path, written: Any, says: str
) -> None:
    found = configured(tmp_path, {"bad": written, "good": {"command": "x"}})
    assert [entry.name for entry in found.entries] == ["good"]
    assert len(found.problems) == 1
    assert "bad: " in found.problems[0]
    assert says in found.problems[0]


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": 5}', "[" * 100_000, "\ufffd"])
def test_a_file_that_cannot_be_read_is_a_problem_and_no_more(tmp_path: Path, text: str) -> None:
    found = configured(tmp_path, text)
    assert found.entries == ()
    assert len(found.problems) == 1


def test_a_persons_own_entry_counts_before_the_workspaces(tmp_path: Path) -> None:
    found = configured(tmp_path, {"a": {"command": "theirs"}}, {"a": {"command": "mine"}})
    assert [(entry.command, entry.scope) for entry in found.entries] == [("mine", "user")]
    assert "your own entry of that name counts" in found.problems[0]


def test_trust_is_about_exactly_what_was_written_in_one_workspace(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        folder.mkdir()
    entry = configured(first, {"s": {"command": "x", "args": ["${HOST}"]}}).entries[0]
    trust = McpTrust(tmp_path / "state", first)
    assert trust.trusted(entry) is None
    trust.remember(entry, True)
    assert trust.trusted(entry) is True
    assert stat.S_IMODE((tmp_path / "state" / "mcp-trust.json").stat().st_mode) == 0o600
    assert McpTrust(tmp_path / "state", second).trusted(entry) is None
    for change in ({"args": ["-x"]}, {"env": {"LD_PRELOAD": "x"}}, {"command": "y"}, {"cwd": "sub"}):
        changed = configured(first, {"s": {"command": "x", "args": ["${HOST}"], **change}}).entries[0]
        assert trust.trusted(changed) is None, change
    trust.remember(entry, None)
    assert trust.trusted(entry) is None


def test_a_file_keeps_what_else_is_in_it_when_an_entry_is_written(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text('{"inputs": [1], "mcpServers": {"a": {"command": "x"}}}')
    write_entry(file, "b", {"command": "y"})
    assert write_entry(file, "a", None)
    assert not write_entry(file, "a", None)
    assert json.loads(file.read_text()) == {"inputs": [1], "mcpServers": {"b": {"command": "y"}}}
    file.write_text("{broken")
    with pytest.raises(ServerEntryError):
        write_entry(file, "c", {"command": "z"})
    assert file.read_text() == "{broken"
