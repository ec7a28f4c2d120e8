"""A picture of the board of many runs: `python screenshots/fleet.py [--out DIR]`. The runs are the demos' scenarios."""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path

from make import ROOT, ConsoleApp, ConsoleArguments, to_png

from tui_agent.console.screens.fleet import FleetScreen
from tui_agent.fleet.fleet import Bounds
from tui_agent.fleet.opening import FleetArguments
from tui_agent.models.scenario import materialise
from tui_agent.models.scenario_file import load_scenario

RUNS = {
    "breaker": ("website", "forge"),
    "recovery": ("tests", "combined"),
    "parallel": ("survey", "combined"),
    "approvals": ("release", "combined"),
    "compaction": ("report", "combined"),
}
"""Scenarios, what the runs are called, and their policies."""
PATIENCE = 90.0
"""Seconds that the moment may take to come."""


def written(folder: Path) -> Path:
    """The file of tasks: each scenario twice, in workspaces of their own."""
    lines = []
    for copy in ("a", "b"):
        for name, (called, policy) in RUNS.items():
            scenario = load_scenario(name)
            workspace = folder / f"{called}-{copy}"
            workspace.mkdir()
            materialise(scenario, workspace)
            line = {"id": workspace.name, "task": scenario.task, "workspace": workspace.name}
            options = {"policy": policy, "approve": scenario.approve or "ask"}
            lines.append(json.dumps({**line, "model": f"scripted:{name}", "options": options}))
    tasks = folder / "tasks.jsonl"
    tasks.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tasks


def telling(board: FleetScreen) -> bool:
    """Something asks, something fails, something has ended."""
    rows = [run.row for run in board.runs]
    return (
        any(row.asks for row in rows) and any(len(row.ring) > 1 for row in rows) and any(r.over for r in rows)
    )


async def take(out: Path) -> Path:
    """The SVG, once there is something to see."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        options = {"state_dir": str(folder / "state"), "sandbox": "off"}
        start = FleetArguments(written(folder), Bounds(at_once=8), options)
        app = ConsoleApp(ConsoleArguments(fleet=start, overrides=dict(options)))
        async with app.run_test(size=(120, 24), notifications=True) as pilot:
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end:
                await pilot.pause(0.2)
                board = next(iter(app.tabs), None)
                if isinstance(board, FleetScreen) and telling(board):
                    break
            await pilot.press("down", "down")
            await pilot.pause(0.5)
            svg = out / "fleet.svg"
            svg.write_text(app.export_screenshot(title="agent-tui"), encoding="utf-8")
            await app.close_sessions()
    return svg


def main() -> None:
    """Make the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "screenshots")
    svg = asyncio.run(take(parser.parse_args().out))
    print(to_png(svg) or svg)


if __name__ == "__main__":
    main()
