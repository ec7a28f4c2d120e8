"""A call that was blocked because nothing answered, through the production loop: real commands against a real port at
which nothing listens before it is time, and the clock of the events.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import replayed, start_session
from tui_agent.core import events

ASK = """\
import socket, sys
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5)
except OSError as error:
    sys.exit(sys.argv[2] if len(sys.argv) > 2 else str(error))
print("connected")
"""
CALL = "python3 ask.py {port}"
BROKEN = "python3 ask.py {port} 'wrong answer'"
START = "./start.sh"
LOOK = "ls"


def turn(*commands: str) -> dict[str, Any]:
    return {"calls": [{"tool": "bash", "args": {"command": command}} for command in commands]}


@pytest.mark.parametrize(
    ("fifth", "seconds_later", "refused", "connected"),
    [
        pytest.param((CALL,), 0, 2, False, id="immediately again"),
        pytest.param((CALL,), 16, 1, True, id="once it has had its time"),
        pytest.param((LOOK, CALL), 0, 2, False, id="after a look at something else"),
        pytest.param((START, CALL), 0, 1, True, id="started in the same reply"),
        pytest.param(("sleep 0; " + CALL,), 0, 1, True, id="as another command that waits"),
        pytest.param((BROKEN,), 16, 2, False, id="what answers wrongly does not heal by waiting"),
    ],
)
async def test_a_server_that_comes_up_is_asked_again(
    tmp_path: Path, fifth: tuple[str, ...], seconds_later: int, refused: int, connected: bool
) -> None:
    """Three failures, the fourth call is refused; before the fifth reply the server is there."""
    now = [1_000.0]
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        port = server.getsockname()[1]
        call = BROKEN if BROKEN in fifth else CALL
        turns = [turn(*(one.format(port=port) for one in reply)) for reply in [(call,)] * 4 + [fifth]]
        live = await start_session(
            tmp_path,
            [*turns, "done", "done"],
            operator=ScriptedOperator(present=False),
            files={"ask.py": ASK, "start.sh": "#!/bin/sh\necho started\n"},
            clock=lambda: now[0],
            sandbox={"mode": "off"},
            on_escalation="continue",
        )
        (tmp_path / "workspace" / "start.sh").chmod(0o755)

        def comes_up(event: events.Event, _: Any) -> None:
            if isinstance(event, events.IterationStarted) and event.iteration == 5:
                server.listen()
                now[0] += seconds_later

        live.session.subscribe(comes_up)
        await live.run()
    refusals = live.of(events.ToolRefused)
    assert len(refusals) == refused
    assert ("wait 15 seconds" in refusals[0].content) == (call is CALL)
    assert any("connected" in result.content for result in live.of(events.ToolSucceeded)) == connected
    state = live.state
    await live.close()
    assert replayed(live.session).recovery == state.recovery
