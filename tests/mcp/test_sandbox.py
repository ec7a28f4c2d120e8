"""Servers of a workspace run in the sandbox of commands; one's own run with one's rights."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from tests.mcp.harness import call, eventually, one_tool_server, session_with, standing, turns
from tests.sandbox.boxes import folder_at_home, needed
from tui_agent.config.sections import SandboxSettings
from tui_agent.core import events
from tui_agent.sandbox import choose
from tui_agent.tools.mcp.status import ServerStatus

SERVER = one_tool_server(
    "probe",
    """
import os, socket
def said():
    found = []
    for name in (os.path.expanduser("~/.netrc"), SECRET):
        try:
            found.append(open(name).read())
        except OSError as error:
            found.append(error.strerror)
    for name in (OUTSIDE, "inside.txt", ".git/hooks/x"):
        try:
            open(name, "w").write("written")
            found.append("wrote " + name)
        except OSError as error:
            found.append(error.strerror)
    for address in ("service", ("127.0.0.1", PORT)):
        with socket.socket(socket.AF_UNIX if address == "service" else socket.AF_INET) as own:
            found.append("reached" if own.connect_ex(address) == 0 else "refused")
    return " | ".join(found)
""",
)


@pytest.mark.parametrize("mechanism", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("servers", ["workspace", "off"])
async def test_a_server_of_the_workspace_is_in_the_sandbox(
    mechanism: choose.Mechanism, servers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed(mechanism)
    monkeypatch.setattr(choose, "candidates", lambda: (mechanism,))
    with (
        folder_at_home() as folder,
        socket.socket(socket.AF_UNIX) as unix,
        socket.create_server(("127.0.0.1", 0)) as net,
    ):
        workspace = folder / "workspace"
        (workspace / ".git" / "hooks").mkdir(parents=True)
        (folder / "secret").write_text("THE-SECRET")
        script = SERVER.replace("SECRET", json.dumps(str(folder / "secret")))
        port = net.getsockname()[1]
        script = script.replace("OUTSIDE", json.dumps(str(folder / "outside"))).replace("PORT", str(port))
        (workspace / "server.py").write_text(script)
        entry = {"command": "/usr/bin/env", "args": ["python3", "-I", "server.py"]}
        chosen = SandboxSettings.model_validate({"servers": servers})
        async with session_with(folder, {"p": entry}, turns(call("p__probe")), sandbox=chosen) as live:
            await eventually(lambda: standing(live, "p").status is ServerStatus.READY)
            unix.bind(str(workspace / "service"))
            unix.listen()
            await live.run()
            (asked,) = [one for one in live.of(events.ServerAsked) if one.purpose == "trust"]
            (result,) = [one for one in live.of(events.ToolSucceeded) if one.tool == "p__probe"]
        walled = servers == "workspace"
        assert ("in the sandbox of commands" in asked.message) is walled
        assert ("THE-SECRET" in result.content) is not walled
        assert (folder / "outside").exists() is not walled
        assert result.content.endswith("refused | refused" if walled else "reached | reached")
        assert (workspace / "inside.txt").read_text() == "written"
        assert (workspace / ".git" / "hooks" / "x").exists() is not walled


def test_one_s_own_server_runs_with_one_s_rights(tmp_path: Path) -> None:
    from tui_agent.config.mcp_servers import ServerEntry
    from tui_agent.config.settings import Settings
    from tui_agent.sandbox.mechanisms import Sandbox
    from tui_agent.sandbox.policy import SandboxPolicy
    from tui_agent.session.sandboxes import for_server

    inside = Sandbox("bubblewrap", SandboxPolicy.around(tmp_path, tmp_path / "s"))
    for scope, servers, walled in (
        ("user", "workspace", False),
        ("user", "all", True),
        ("workspace", "workspace", True),
        ("workspace", "off", False),
    ):
        settings = Settings(workspace=tmp_path, sandbox=SandboxSettings.model_validate({"servers": servers}))
        entry = ServerEntry("x", scope, tmp_path / ".mcp.json", {}, command="x")
        found = for_server(settings, entry, inside)
        assert (found.mechanism is not None) is walled
        assert not walled or (found.policy is not None and found.policy.network)
