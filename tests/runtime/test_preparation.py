"""A run whose preparation fails is a notice with its cause; its message waits and goes out with the next one."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.runtime.session_harness import LIMIT, LiveSession, replayed, start_session
from tests.scripted_model import scripted_model
from tui_agent.config.settings import Settings
from tui_agent.core import events
from tui_agent.headless import run_headless
from tui_agent.runtime.driver import Driver
from tui_agent.sandbox.mechanisms import Sandbox
from tui_agent.session import sandbox as sandbox_module
from tui_agent.session import session as session_module
from tui_agent.session import skills as skills_module

DONE = {"text": "done"}


def block_scratch(live: LiveSession) -> Path:
    """Put a file where the commands' temporary folder should be."""
    blocked = live.session.folder / sandbox_module.SCRATCH_FOLDER
    blocked.write_text("in the way")
    return blocked


async def settled(live: LiveSession) -> None:
    await asyncio.wait_for(live.session.wait(), LIMIT)


def errors(live: LiveSession) -> list[str]:
    return [notice.text for notice in live.of(events.Notice) if notice.severity == "error"]


async def test_a_scratch_folder_that_cannot_be_made_keeps_the_message_and_the_next_try_sends_it(
    tmp_path: Path,
) -> None:
    live = await start_session(tmp_path, [DONE, DONE], sandbox="auto")
    blocked = block_scratch(live)
    await live.session.submit("first")
    await settled(live)
    (said,) = errors(live)
    assert "The run was not started" in said
    assert "File exists" in said
    assert [message.text for message in live.state.queue] == ["first"]

    assert live.session.runs.send_waiting()  # still in the way
    await settled(live)
    assert len(errors(live)) == 2
    assert [message.text for message in live.state.queue] == ["first"]

    blocked.unlink()
    assert live.session.runs.send_waiting()
    assert (await live.ended()).answer == "done"
    assert live.state.queue == ()
    assert [message["content"] for message in live.sent() if message["role"] == "user"] == ["first"]
    assert not live.session.runs.send_waiting()
    await live.close()
    assert replayed(live.session) == live.state


async def test_what_waits_goes_before_a_new_message(tmp_path: Path) -> None:
    live = await start_session(tmp_path, [DONE, DONE], sandbox="auto")
    blocked = block_scratch(live)
    await live.session.submit("first")
    await settled(live)
    blocked.unlink()
    await live.session.submit("second")
    await live.ended()
    said = [message["content"] for message in live.sent() if message["role"] == "user"]
    assert said == ["first", "second"]
    await live.close()


BROKEN = {"sandbox_policy": sandbox_module, "find_skills": skills_module, "system_prompt": session_module}


@pytest.mark.parametrize("name", BROKEN)
async def test_whatever_breaks_before_a_run_is_said_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def breaks(*_: Any, **__: Any) -> NoReturn:
        raise RuntimeError("no such luck")

    live = await start_session(tmp_path, [DONE], sandbox="auto")
    with monkeypatch.context() as patch:
        patch.setattr(BROKEN[name], name, breaks)
        live.session.warm_up()  # which says nothing yet
        await live.session.submit("first")
        await settled(live)
    assert "no such luck" in errors(live)[0]
    assert live.session.runs.send_waiting()
    assert (await live.ended()).answer == "done"
    await live.close()


async def test_a_queued_message_whose_run_cannot_be_prepared_stays_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = await start_session(tmp_path, [DONE, DONE, DONE], sandbox="auto")
    real = skills_module.find_skills

    def breaks(*_: Any, **__: Any) -> NoReturn:
        raise RuntimeError("no such luck")

    def queue_two(event: events.Event, _: Any) -> None:
        if isinstance(event, events.RunFinished) and event.seq < 20:
            monkeypatch.setattr(skills_module, "find_skills", breaks)
            for text in ("b", "c"):
                live.session.recorder.record(events.MessageQueued(id=text, text=text))

    live.session.subscribe(queue_two)
    await live.session.submit("a")
    await settled(live)
    assert [message.text for message in live.state.queue] == ["b", "c"]
    assert len(errors(live)) == 1
    monkeypatch.setattr(skills_module, "find_skills", real)
    assert live.session.runs.send_waiting()
    await settled(live)
    assert live.state.queue == ()
    await live.close()


async def test_a_sandbox_that_breaks_in_mid_run_fails_the_call_and_is_tried_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = {"calls": [{"tool": "bash", "args": {"command": "echo hello"}}]}
    sandbox, failed_once = sandbox_module.SessionSandbox.ready, False

    async def at_first_not(mine: sandbox_module.SessionSandbox) -> Sandbox:
        nonlocal failed_once
        if live.state.run.iteration and not failed_once:
            failed_once = True
            raise OSError(28, "No space left on device")
        return await sandbox(mine)

    monkeypatch.setattr(sandbox_module.SessionSandbox, "ready", at_first_not)
    live = await start_session(tmp_path, [call, call, DONE], sandbox="auto")
    finished = await live.run()
    assert finished.outcome == "answered"
    (failed,) = live.of(events.ToolFailed)
    assert "The sandbox could not be prepared" in failed.failure.message
    assert failed.failure.transient
    assert len(live.of(events.ToolSucceeded)) == 1
    await live.close()


async def test_run_without_a_screen_says_the_cause_and_exits_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: Any, **__: Any) -> NoReturn:
        raise OSError(28, "No space left on device", "/somewhere/tmp")

    monkeypatch.setattr(sandbox_module, "sandbox_policy", breaks)
    settings = Settings(workspace=tmp_path, state_dir=tmp_path / "state", model="scripted", output="json")
    code = await run_headless(settings, "go", model=scripted_model([DONE]))
    out = capsys.readouterr()
    result = json.loads(io.StringIO(out.out).read())
    assert code == 1
    assert result["outcome"] == "error"
    assert "The run was not started: No space left on device" in result["reason"]


async def test_a_run_that_breaks_outside_of_its_loop_is_said_also_where_nobody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaks(*_: object) -> NoReturn:
        raise RuntimeError("the driver broke")

    monkeypatch.setattr(Driver, "run", breaks)
    live = await start_session(tmp_path, [DONE], sandbox="auto")
    await live.session.submit("go")
    with pytest.raises(RuntimeError):
        await settled(live)
    await asyncio.sleep(0)
    assert errors(live) == ["Internal error: RuntimeError: the driver broke"]
