"""Fleets of scripted runs in a test's own folder, each of which waits in its second step for a file `go`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tui_agent.fleet.fleet import Bounds, Fleet, FleetRun
from tui_agent.fleet.opening import FleetArguments, open_fleet
from tui_agent.fleet.tasks import FleetTask
from tui_agent.runtime.operator import Operator

SCENARIO = """
title = "Waits"
task = "t"
[[turns]]
text = "Looking."
calls = [{ tool = "list_dir", args = {} }]
usage = { prompt = 100, completion = 10, cost = 0.001 }
[[turns]]
calls = [{ tool = "bash", args = { command = "until [ -e go ]; do sleep 0.05; done" } }]
usage = { prompt = 100, completion = 10, cost = 0.001 }
[[turns]]
calls = [{ tool = "write_file", args = { path = "out.txt", content = "done\\n" } }]
usage = { prompt = 100, completion = 10, cost = 0.001 }
[[turns]]
text = "It is there."
usage = { prompt = 100, completion = 10, cost = 0.001 }
"""


def written(folder: Path, runs: int, *extra: str) -> Path:
    """A file of so many tasks, with other lines after them."""
    (folder / "waits.toml").write_text(SCENARIO)
    lines = []
    for number in range(runs):
        (folder / f"w{number}").mkdir(exist_ok=True)
        lines.append(json.dumps({"task": f"Part {number}", "workspace": f"w{number}", "id": f"r{number}"}))
    path = folder / "tasks.jsonl"
    path.write_text("\n".join([*lines, *extra]) + "\n")
    return path


def options(folder: Path) -> dict[str, object]:
    """Settings of every run."""
    return {
        "model": f"scripted:{folder / 'waits.toml'}",
        "approve": "all",
        "sandbox": "off",
        "state_dir": str(folder / "state"),
    }


def let_go(folder: Path) -> None:
    """The runs wait no longer."""
    for workspace in folder.glob("w*/"):
        (workspace / "go").touch()


def arguments(folder: Path, runs: int, **given: Any) -> FleetArguments:
    """A fleet of one worker, unless something else is `given`."""
    bounds = given.pop("bounds", Bounds(at_once=runs))
    given.setdefault("workers", 1)
    overrides = {**options(folder), **given.pop("overrides", {})}
    return FleetArguments(written(folder, runs), bounds, overrides, **given)


async def carried_out(
    start: FleetArguments,
    changed: Callable[[Fleet, FleetRun | None], None] = lambda *_: None,
    operator_for: Callable[[FleetTask], Operator | None] = lambda _: None,
) -> Fleet:
    """A fleet, at its end."""
    async with open_fleet(start, operator_for) as opened:
        opened.fleet.changed = lambda run: changed(opened.fleet, run)
        async with asyncio.timeout(120):
            await opened.fleet.run(opened.start)
        return opened.fleet


def all_wait(fleet: Fleet) -> bool:
    """Each run is in the step that waits."""
    return all(run.row.step >= 2 for run in fleet.runs)
