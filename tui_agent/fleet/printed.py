"""A fleet without a screen: a line for each change, and a table or an object at the end."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Sequence
from typing import Any, TextIO

from tui_agent.fleet.fleet import FleetRun, Place
from tui_agent.fleet.opening import FleetArguments, OpenFleet, open_fleet
from tui_agent.quantities import counted
from tui_agent.terminal_text import one_line

ANSWERED, WRONG, UNANSWERED, HALTED = 0, 1, 3, 130
"""Exit codes."""


async def run_printed(arguments: FleetArguments, out: TextIO, errors: TextIO, form: str) -> int:
    """Carry all runs out: changes go to `errors`, the end to `out`. The exit code."""
    async with open_fleet(arguments) as opened:
        fleet = opened.fleet
        lines = _Lines(errors)
        for line in opened.bad:
            lines.say(f"{arguments.tasks.name}:{line.line}: {line.why}")
        fleet.changed = lines.changed
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, fleet.halt, f"Ended by {signal.Signals(number).name}.")
        await fleet.run(opened.start)
        await opened.tell()
        if fleet.halted:
            lines.say(f"{fleet.halted} The same command goes on.")
        out.write(as_json(opened) if form == "json" else as_table(opened))
        return exit_code(opened)


def exit_code(opened: OpenFleet) -> int:
    """See `agent-tui fleet --help`."""
    if opened.bad or any(run.place is Place.FAILED for run in opened.fleet.runs):
        return WRONG
    if not opened.fleet.finished:
        return HALTED
    return ANSWERED if all(run.outcome == "answered" for run in opened.fleet.runs) else UNANSWERED


class _Lines:
    """A line for each run whose stage or verdict changed; steps alone make none."""

    def __init__(self, errors: TextIO) -> None:
        self._errors = errors
        self._said: dict[str, tuple[object, ...]] = {}

    def say(self, text: str) -> None:
        self._errors.write(one_line(text, 2_000) + "\n")
        self._errors.flush()

    def changed(self, run: FleetRun | None) -> None:
        if run is None:
            return
        stands = run.outcome, run.row.badge, run.lost
        if self._said.get(run.task.id) == stands:
            return
        self._said[run.task.id] = stands
        words = [run.task.id, run.outcome]
        if run.place is Place.RUNNING and run.row.badge:
            words.append(f"{run.row.badge} step {run.row.step}")
        if run.place is Place.WAITING and run.lost:
            words.append("its worker ended; it goes on in another one")
        reason = run.why or (run.row.answer if run.over else run.row.failing)
        self.say(" · ".join([*words, *([reason] if reason else [])]))


HEAD = ("run", "outcome", "step", "ring", "attempts", "cost", "session", "task")


def cost_in_words(cost: float | None) -> str:
    """Money in USD, or that nobody knows."""
    return "unknown" if cost is None else f"{cost:.4f}"


def _cells(run: FleetRun) -> tuple[str, ...]:
    row = run.row
    ring, attempts = str(len(row.ring)), str(row.attempts)
    cost = cost_in_words(row.cost)
    why = f"{row.task}: {one_line(run.why)}" if run.why else row.task
    return run.task.id, run.outcome, str(row.step), ring, attempts, cost, run.session, why


def as_table(opened: OpenFleet) -> str:
    """A row a run, in the order of the file, and the lines that are none."""
    rows: Sequence[tuple[str, ...]] = [HEAD, *map(_cells, opened.fleet.runs)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEAD) - 1)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    ]
    outcomes: dict[str, int] = {}
    for run in opened.fleet.runs:
        outcomes[run.outcome] = outcomes.get(run.outcome, 0) + 1
    summary = ", ".join(f"{number} {outcome}" for outcome, number in outcomes.items())
    bad = f"; {counted(len(opened.bad), 'line')} could not be read" if opened.bad else ""
    lines.append(f"{counted(len(opened.fleet.runs), 'run')}: {summary}{bad}; {opened.fleet.cost:.4f} USD")
    return "\n".join(lines) + "\n"


def as_json(opened: OpenFleet) -> str:
    """One object: `runs` in the order of the file, `bad_lines`, `cost_usd`, `halted`."""

    def one(run: FleetRun) -> dict[str, Any]:
        known = {"id": run.task.id, "line": run.task.line, "outcome": run.outcome, "session_id": run.session}
        return {**known, "why": run.why, "workers_lost": run.lost, "result": run.result}

    document = {
        "runs": [one(run) for run in opened.fleet.runs],
        "bad_lines": [line._asdict() for line in opened.bad],
        "cost_usd": opened.fleet.cost,
        "halted": opened.fleet.halted,
    }
    return json.dumps(document, indent=2) + "\n"
