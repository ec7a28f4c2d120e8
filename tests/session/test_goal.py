"""A session's goal: answers are checked by a command, and sent back while it fails."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from tests.frontend.scripted_host import ScriptedHost
from tests.runtime.session_harness import start_session
from tui_agent.core import events

WRITE = {"calls": [{"tool": "write_file", "args": {"path": "state.txt", "content": "1\n"}}]}


async def test_an_answer_is_sent_back_until_the_command_agrees(tmp_path: Path) -> None:
    live = await start_session(tmp_path, ["Done.", WRITE, "Now it is."])
    host = ScriptedHost(live.session)
    assert "/check COMMAND comes first" in (await host.typed("/goal it holds 1"))[0]
    await host.typed("/check grep 1 state.txt")
    assert await host.typed("/goal it holds 1") == ["The goal: it holds 1"]
    await live.run()
    tasks = [event.task for event in live.of(events.RunStarted)]
    assert len(tasks) == 2
    assert "its check `grep 1 state.txt` failed (exit code 2). The goal is: it holds 1" in tasks[1]
    assert "No such file" in json.dumps(live.sent(1))
    assert live.state.run.outcome is events.Outcome.ANSWERED
    await host.typed("/check off")
    assert live.session.goal is None
    await live.close()


async def test_rounds_without_progress_end_with_their_reason_and_a_new_task_begins_anew(
    tmp_path: Path,
) -> None:
    live = await start_session(tmp_path, ["Done."] * 8)
    await ScriptedHost(live.session).typed("/check echo one failed; exit 1")
    for asked in (4, 8):
        await live.run()
        assert len(live.of(events.RunStarted)) == asked
        assert live.of(events.Notice)[-1].text.endswith("one failed), and 3 rounds brought nothing new.")
    await live.close()


@pytest.mark.parametrize("how", ["interrupt", "stop"])
async def test_a_check_that_runs_is_ended_by_the_operator(how: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "begun")
    live = await start_session(tmp_path, ["Done.", "Not asked for."])
    await ScriptedHost(live.session).typed("/check echo > ../begun; sleep 600")
    await live.session.submit("go")
    await asyncio.to_thread((tmp_path / "begun").read_text)
    await getattr(live.session, how)()
    await live.ended()
    assert live.of(events.Notice)[-1].text == "It was interrupted while its check ran."
    assert len(live.of(events.RunStarted)) == 1
    await live.close()


async def test_a_message_that_was_typed_meanwhile_is_read_before_the_next_check(tmp_path: Path) -> None:
    live = await start_session(tmp_path, ["Done.", "Not yet.", WRITE, "Now it is."])
    await ScriptedHost(live.session).typed("/check grep 1 state.txt")
    checks = 0

    def heard(event: events.Event, _: object) -> None:
        nonlocal checks
        if isinstance(event, events.OwnCommandEnded):
            checks += 1
            if checks == 1:
                live.session.runs.put("Is it?")

    live.session.subscribe(heard)
    await live.run()
    assert "Is it?" in json.dumps(live.sent(2))
    assert (checks, live.state.queue, live.session.goal_keeper.unmet) == (3, (), None)
    await live.close()


@pytest.mark.parametrize("theirs", [False, True], ids=["a session of ours", "one that somebody else made"])
async def test_a_resumed_session_keeps_its_check_unless_somebody_else_wrote_it(
    theirs: bool, tmp_path: Path
) -> None:
    live = await start_session(tmp_path, ["Done."])
    await ScriptedHost(live.session).typed("/check true")
    await live.run()
    await live.close()
    folder = live.session.folder
    if theirs:
        folder = folder.rename(tmp_path / "theirs")
    again = await start_session(tmp_path, ["Done."], resume=folder)
    assert (again.session.goal is None) == theirs
    await again.close()
