"""`agent-tui mcp`: servers are added, listed, trusted, connected to and removed."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from tests.cli.conftest import CommandLine

RAW = Path(__file__).parents[1] / "mcp" / "raw_server.py"


def test_a_server_is_added_trusted_looked_at_and_removed(cli: CommandLine) -> None:
    # It runs in the sandbox, which sees the workspace and perhaps not where the tests are.
    server = shutil.copy(RAW, cli.workspace)
    added = cli(
        "mcp", "add", "raw", "--scope", "workspace", "--env", "A=b", sys.executable, "-S", server, "--x"
    )
    assert added.code == 0
    entry = json.loads((cli.workspace / ".mcp.json").read_text())["mcpServers"]["raw"]
    assert entry == {"command": sys.executable, "args": ["-S", server, "--x"], "env": {"A": "b"}}
    assert "· raw  not trusted" in cli("mcp").out
    trusted = cli("mcp", "trust", "raw")
    assert server in trusted.out
    assert "variable A: b" in trusted.out
    listed = json.loads(cli("mcp", "list", "--json").out)["servers"]
    assert [(row["status"], row["server"], row["tools"]) for row in listed] == [
        ("connected", "raw 0", ["raw__echo"])
    ]
    assert "tool raw__echo: [MCP server raw] Say it again." in cli("mcp", "get", "raw").out
    assert "mcp servers    raw (workspace)" in cli("doctor").out
    assert cli("mcp", "remove", "raw").code == 0
    assert "No MCP server is configured" in cli("mcp").out


def test_an_address_with_a_header_goes_into_the_own_file(cli: CommandLine) -> None:
    assert (
        cli("mcp", "add", "web", "https://example.org/mcp", "--header", "Authorization: Bearer ${T}").code
        == 0
    )
    file = cli.config_file.with_name("mcp.json")
    assert json.loads(file.read_text())["mcpServers"]["web"] == {
        "type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${T}"}
    }  # fmt: skip
    assert "needs the variable T" in cli("mcp", "--offline").out


def test_what_cannot_be_is_said_with_what_would_be_right(cli: CommandLine) -> None:
    cli("mcp", "add", "raw", "run-it")
    for words, says in (
        (("mcp", "trsut", "raw"), "did you mean `agent-tui mcp trust`?"),
        (("mcp", "get", "rwa"), "did you mean raw?"),
        (("mcp", "get"), "needs the name"),
        (("mcp", "add", "x"), "needs a command or an address"),
        (("mcp", "add", "x", "--env", "A", "run"), "--env is written NAME=VALUE"),
        (("mcp", "add", "x", "http://"), "url must be an address"),
    ):
        ended = cli(*words)
        assert ended.code == 2, words
        assert says in ended.err, words
