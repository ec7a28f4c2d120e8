"""Servers made with the SDK, over stdio and over streamable HTTP, through the production loop."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
from collections import deque
from pathlib import Path

import pytest

from tests.mcp.harness import HERE, call, connected, eventually, sdk, session_with, turns
from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import assert_coherent, replayed
from tui_agent.core import events
from tui_agent.runtime.operator import ServerReply
from tui_agent.tools.mcp import connection
from tui_agent.tools.mcp.patience import Patience


def results(seen: list[events.Event]) -> list[str]:
    """What the model read of each call, a word before it for how the call ended."""
    return [f"{event.type}: {event.content}" for event in seen if isinstance(event, events.ToolResult)]


@pytest.mark.process
async def test_a_server_over_stdio_is_used_dies_comes_back_and_is_told_of_interrupts(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    operator = ScriptedOperator()
    operator.consultations = deque(
        [ServerReply("accept"), ServerReply("accept", {"colour": "red", "count": 2})]
    )
    script = turns(
        call("my_bench__add", a=1, b=2),
        call("my_bench__add", a=1),
        call("my_bench__fail", reason="no paper"),
        call("my_bench__slow", steps=8),
        call("my_bench__paint"),
        call("my_bench__long", size=100_000),
        call("my_bench__grow"),
        call("my_bench__die"),
        call("my_bench__extra"),
        call("my_bench__add", a=20, b=22),
    )
    script += turns(call("my_bench__slow", steps=10_000), call("my_bench__add", a=1, b=1))
    async with session_with(tmp_path, {"my bench": sdk(notes)}, script, operator=operator) as live:
        await connected(live, "my bench")
        seen: list[tuple[str, ...]] = []
        live.session.subscribe(
            lambda event, _: seen.append(event.tools) if isinstance(event, events.ModelCallStarted) else None
        )
        await live.run()
        texts = results(live.events)
        assert texts[0] == "tool_succeeded: 3"
        assert re.match("tool_failed.*'b'", texts[1], re.DOTALL)
        assert re.match("tool_failed.*no paper", texts[2], re.DOTALL)
        assert texts[3] == "tool_succeeded: all done"
        assert texts[4] == "tool_succeeded: painted 2 in red"
        assert "characters left out here; the whole is in" in texts[5][:40_000]
        assert texts[6] == "tool_succeeded: grown"
        assert re.match("tool_failed.*ended during the tool die", texts[7], re.DOTALL)
        # The server that comes back has not grown yet.
        assert texts[8].startswith("tool_failed")
        assert texts[9] == "tool_succeeded: 42"
        progress = "".join(event.text for event in live.of(events.ToolProgress))
        assert "1 of 8 · step 1" in progress
        assert "my_bench__extra" not in seen[0]
        assert "my_bench__extra" in seen[7], "the changed list joined the next request"
        asked = live.of(events.ServerAsked)
        assert [each.purpose for each in asked] == ["trust", "elicitation"]
        assert live.of(events.ServerAnswered)[-1].given == ("colour", "count")
        journal = (live.session.folder / "events.jsonl").read_text().splitlines()
        assert not any('"red"' in line for line in journal if '"type":"server_' in line), (
            "values are the server's"
        )
        assert_coherent(live.sent())
        assert replayed(live.session).run == live.state.run
        await live.session.submit("again")
        await live.until(lambda state: any(call.progress for call in state.conversation.calls))
        await live.session.interrupt()
        await eventually(lambda: "cancelled" in notes.read_text())
        live.session.set_mode(events.Mode.AUTO)
        assert (await live.ended()).outcome is events.Outcome.ANSWERED
        assert results(live.events)[-2] == "tool_succeeded: 2"
        environment = json.loads(notes.read_text().splitlines()[0])["environment"]
        assert "PATH" in environment
        assert not any("KEY" in name for name in environment)


@pytest.mark.process
async def test_a_server_over_http_is_used_and_comes_back_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "Patience", lambda: Patience(reconnect=120, failures=50, backoff_cap=0.5))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    async def serve() -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(HERE / "sdk_server.py"), "http", str(port),
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip

        async def listens() -> None:
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0.05)
                else:
                    writer.close()
                    return

        await asyncio.wait_for(listens(), 60)
        return process

    operator = ScriptedOperator()
    operator.consultations = deque([ServerReply("accept"), ServerReply("decline")])
    script = turns(
        call("web__add", a=1, b=2),
        call("web__slow", steps=6),
        call("web__paint"),
        call("web__die"),
        call("web__add", a=2, b=2),
    )
    process = await serve()
    restart: list[asyncio.Future[asyncio.subprocess.Process]] = []
    entry = {
        "type": "http",
        "url": f"http://127.0.0.1:{port}/mcp",
        "headers": {"Authorization": "Bearer abcdef123"},
    }
    try:
        async with session_with(tmp_path, {"web": entry}, script, operator=operator) as live:
            await connected(live, "web")
            live.session.subscribe(
                lambda event, _: (
                    restart.append(asyncio.ensure_future(serve()))
                    if isinstance(event, events.ToolFailed) and event.tool == "web__die"
                    else None
                )
            )
            await live.run()
            texts = results(live.events)
            assert texts[0] == "tool_succeeded: 3"
            assert texts[1] == "tool_succeeded: all done"
            assert texts[2].startswith("tool_failed"), "the operator declined"
            assert texts[3].startswith("tool_failed")
            assert texts[4] == "tool_succeeded: 4"
            assert "1 of 6 · step 1" in "".join(event.text for event in live.of(events.ToolProgress))
            assert "abcdef123" not in (live.session.folder / "events.jsonl").read_text()
    finally:
        for each in (process, *await asyncio.gather(*restart)):
            if each.returncode is None:
                each.kill()
            await each.wait()
