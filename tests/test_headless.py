"""A run without a screen, in this process: what it does with a session that was left behind."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.session_harness import start_session
from tests.scripted_model import scripted_model
from tui_agent.config.settings import Settings
from tui_agent.core import events
from tui_agent.headless import run_headless
from tui_agent.store.journal import read_journal

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
