"""A run without a screen, in this process: what it does with a session that was left behind."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.ntfy_server import NtfyServer, ntfy_server
from tests.runtime.session_harness import start_session
from tests.scripted_model import scripted_model
from tui_agent.config.sections import NotifySettings, SandboxSettings
from tui_agent.config.settings import Settings
from tui_agent.core import events
from tui_agent.headless import run_headless
from tui_agent.session.goal import Goal
from tui_agent.store.journal import read_journal

server = ntfy_server

MISS = {"calls": [{"tool": "read_file", "args": {"path": "missing.txt"}}]}
HANG = {"calls": [{"tool": "bash", "args": {"command": "sleep 600"}}]}


async def left_open(folder: Path, *turns: dict[str, Any]) -> Path:
    """The session folder of a run that was killed while the last turn's command ran."""
    live = await start_session(folder, turns)
    await live.session.submit("read it")
    await live.until(lambda _: any(event.tool == "bash" for event in live.of(events.ToolStarted)))
    await live.session.recorder.barrier()
    killed = shutil.copytree(live.session.folder, folder / "state" / "sessions" / "killed")
    await live.session.close()
    return killed


async def resumed(
    folder: Path,
    session: Path,
    capsys: pytest.CaptureFixture[str],
    *turns: dict[str, Any] | str,
    timeout: float | None = None,
) -> tuple[int, dict[str, Any]]:
    settings = Settings(
        model="scripted",
        approve="all",
        output="json",
        workspace=folder / "workspace",
        state_dir=folder / "state",
        on_escalation="partial",
        timeout=timeout,
    )
    model = scripted_model(turns)
    code = await asyncio.wait_for(run_headless(settings, "try again", model=model, resume=session), 30)
    return code, json.loads(capsys.readouterr().out)


async def test_a_run_that_was_left_open_goes_on_with_its_counters_and_hears_the_new_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    killed = await left_open(tmp_path, MISS, MISS, HANG)
    code, result = await resumed(tmp_path, killed, capsys, MISS, MISS, HANG, MISS, "It is not there.")
    # The third failure of one call, counted over both processes, and the closing turn.
    assert (code, result["outcome"], result["iterations"]) == (3, "partial", 5)
    assert "It is not there." in result["answer"]
    assert [(each["tool"], each["count"]) for each in result["attempts"]] == [("read_file", 3)]
    recorded = read_journal(killed).events
    assert len([event for event in recorded if isinstance(event, events.RunStarted)]) == 1
    assert [event.text for event in recorded if isinstance(event, events.OperatorSpoke)] == ["try again"]


async def test_a_run_that_ended_is_followed_by_a_new_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    live = await start_session(tmp_path, [MISS, MISS, "It is not there."])
    await live.run("read it")
    await live.session.close()
    code, result = await resumed(
        tmp_path, live.session.folder, capsys, MISS, "Still not.", "Still not there."
    )
    assert (code, result["answer"]) == (0, "Still not there.")
    tasks = [event.task for event in read_journal(live.session.folder).events if event.type == "run_started"]
    assert tasks == ["read it", "try again"]


async def test_a_run_whose_time_is_up_before_it_begins_is_interrupted_and_not_the_one_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    live = await start_session(tmp_path, ["It is there."])
    await live.run("read it")
    await live.session.close()
    code, result = await resumed(tmp_path, live.session.folder, capsys, "Never asked.", timeout=1e-9)
    assert (code, result["outcome"], result["iterations"]) == (130, "interrupted", 0)
    assert "--timeout" in result["reason"]
    assert "It is there." not in result["answer"]


async def test_an_answer_without_any_success_says_so_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(
        model="scripted", approve="all", output="text", workspace=tmp_path, state_dir=tmp_path / "state"
    )
    model = scripted_model([MISS, "It needs Python 3.8.", "It needs Python 3.8."])
    code = await asyncio.wait_for(run_headless(settings, "What does it need?", model=model), 30)
    said = capsys.readouterr()
    assert (code, said.out) == (0, "It needs Python 3.8.\n")
    assert "agent-tui: answered: Answered without a single successful tool call." in said.err


WRITE = {"calls": [{"tool": "write_file", "args": {"path": "state.txt", "content": "1\n"}}]}


@pytest.mark.parametrize(
    ("check", "turns", "code", "asked", "reason"),
    [
        ("true", ["Done."], 0, 1, ""),
        ("grep 1 state.txt", ["Done.", WRITE, "Now it is."], 0, 2, ""),
        ("echo one failed; exit 1", ["Done."] * 8, 4, 4, "(exit code 1: one failed), and 3 rounds"),
    ],
)
async def test_an_answer_is_sent_back_while_its_check_fails(
    check: str,
    turns: list[Any],
    code: int,
    asked: int,
    reason: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "work").mkdir()
    settings = Settings(
        model="scripted",
        approve="all",
        output="json",
        workspace=tmp_path / "work",
        state_dir=tmp_path / "state",
    )
    goal = Goal(check, "state.txt holds 1")
    ran = run_headless(settings, "go", model=scripted_model(turns), goal=goal)
    assert await asyncio.wait_for(ran, 60) == code
    result = json.loads(capsys.readouterr().out)
    assert reason in result["reason"]
    recorded = read_journal(tmp_path / "state" / "sessions" / result["session_id"]).events
    tasks = [event.task for event in recorded if isinstance(event, events.RunStarted)]
    assert len(tasks) == asked
    assert all("The goal is: state.txt holds 1" in task for task in tasks[1:])
    assert [event.command for event in recorded if isinstance(event, events.OwnCommandEnded)] == [
        check
    ] * asked


async def test_the_end_of_a_run_is_told_where_the_settings_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], server: NtfyServer
) -> None:
    notify = NotifySettings(webhook=f"{server.address}/hook")
    settings = Settings(model="scripted", workspace=tmp_path, state_dir=tmp_path / "state", notify=notify)
    assert await run_headless(settings, "go", model=scripted_model(["Done."])) == 0
    assert [body["text"] for _, body in server.got] == ["answered: Done."]
    assert capsys.readouterr().out.strip().endswith("Done.")


async def test_a_signal_ends_a_check_that_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(
        model="scripted", approve="all", output="json", workspace=tmp_path, state_dir=tmp_path / "state"
    )
    goal = Goal("kill -TERM $(cat pid); sleep 600")
    (tmp_path / "pid").write_text(str(os.getpid()))
    with_sandbox_off = settings.replaced(sandbox=SandboxSettings(mode="off"))
    ran = run_headless(with_sandbox_off, "go", model=scripted_model(["Done."]), goal=goal)
    assert await asyncio.wait_for(ran, 60) == 130
    assert "while its check ran" in json.loads(capsys.readouterr().out)["reason"]


@pytest.mark.process
async def test_failing_tests_with_edits_between_do_not_end_a_run_that_nobody_watches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the settings as they come: three times the same assertion, an edit between each two, then the fix."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "tax.py").write_text("def tax(net):\n    return net * 0.19\n")
    (workspace / "prices.py").write_text("from tax import tax\nassert tax(10.05) == 1.91, tax(10.05)\n")
    test = {"calls": [{"tool": "bash", "args": {"command": "python3 -B prices.py"}}]}
    tries = [
        {"calls": [{"tool": "bash", "args": {"command": f"sed -i 's/^def/# {number}\\ndef/' tax.py"}}]}
        for number in range(3)
    ]
    fix = {
        "calls": [
            {"tool": "bash", "args": {"command": "sed -i 's/net \\* 0.19/round(net * 0.19, 2)/' tax.py"}}
        ]
    }
    turns = [test, tries[0], test, tries[1], test, tries[2], test, fix, test, "tax() rounds now."]
    settings = Settings(
        model="scripted", approve="all", output="json", workspace=workspace, state_dir=tmp_path / "state"
    )
    code = await asyncio.wait_for(run_headless(settings, "Fix tax().", model=scripted_model(turns)), 60)
    result = json.loads(capsys.readouterr().out)
    assert (code, result["outcome"], result["answer"]) == (0, "answered", "tax() rounds now.")
