"""A detector that only a test has, and the program with it: `python -m tests.recovery.throw_away FOLDER`.

It joins the others before anything else of the program is imported, as if it stood in their list. What the program then
makes of it is printed as JSON.
"""

from __future__ import annotations

import asyncio
import json
import runpy
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tui_agent.core.events import BackgroundEnded, Level, VerdictRecord
from tui_agent.core.evolve import evolve
from tui_agent.core.recovery import detectors
from tui_agent.core.recovery.detector import Account, Answer, Detector, Standing, Step
from tui_agent.core.recovery.parameters import Count, Parameters
from tui_agent.core.recovery.verdict import verdict

ROOT = Path(__file__).resolve().parents[2]


class FidgetParameters(Parameters):
    """One tool all the time."""

    fidget: Literal["off", "guide"] = "guide"
    """Steps in a row with one tool alone: not judged, or the note says so."""
    fidget_limit: Count = 2
    """Such steps in a row that are allowed."""


@dataclass(frozen=True)
class Fidget(Detector[FidgetParameters]):
    """Steps in a row in which one tool alone was called."""

    name = "fidget"
    parameters = FidgetParameters
    off = {"fidget": "off"}

    tool: str = ""
    count: int = 0
    jobs: int = 0
    """Commands in the background that have ended, which this detector hears of."""

    def apply(self, step: Step[FidgetParameters]) -> Fidget:
        called = {result.tool for result in step.iteration.results}
        if len(called) != 1:
            return evolve(self, tool="", count=0)
        (tool,) = called
        return evolve(self, tool=tool, count=self.count + 1 if tool == self.tool else 1)

    def answered(self, answer: Answer[FidgetParameters]) -> Fidget:
        return evolve(self, count=0) if answer.informs else self

    def _ended(self, _event: BackgroundEnded, _: FidgetParameters) -> Fidget:
        return evolve(self, jobs=self.jobs + 1)

    hears = {BackgroundEnded: _ended}

    @classmethod
    def rungs(cls, policy: FidgetParameters) -> frozenset[str]:
        return frozenset({"guide"}) if policy.fidget == "guide" else frozenset()

    def verdict(self, standing: Standing[FidgetParameters]) -> VerdictRecord:
        if self.count <= standing.policy.fidget_limit:
            return self.silent
        return verdict(Level.GUIDE, "fidget.guide", f"{self.tool} alone for {self.count} steps")

    def account(self, standing: Standing[Any], key: str, tool: str) -> Account:
        return Account(f"{self.count} of {standing.policy.fidget_limit} steps with one tool alone")


def joined() -> None:
    """Let it join the others."""
    assert not {name for name in sys.modules if name.endswith(("recovery.policy", "recovery.engine"))}
    detectors.DETECTORS = (*detectors.DETECTORS, Fidget)
    detectors.Detectors = tuple[detectors.DETECTORS]


def _policies() -> dict[str, Any]:
    from tui_agent.core.recovery.policy import PRESETS

    return {
        name: {
            "value": policy.model_dump()["fidget"],
            "has a say": "fidget" in policy.detectors,
            "guides": "guide" in policy.ladder,
        }
        for name, policy in PRESETS.items()
    }


def _contestants() -> dict[str, Any]:
    from tui_agent.core.recovery.policy import preset
    from tui_agent.lab.bench.policies import CONTESTANTS, STANDARD

    made = {name: preset(one.policy, **one.recovery) for name, one in CONTESTANTS.items()}
    return {
        "standard": "without-fidget" in STANDARD,
        "without it": sorted(made["combined"].detectors - made["without-fidget"].detectors),
        "in none": sorted(made["none"].detectors),
        "has a say in": sorted(name for name, policy in made.items() if "fidget" in policy.detectors),
    }


def _keys(folder: Path) -> dict[str, Any]:
    from tui_agent.config.errors import ConfigError
    from tui_agent.config.setting_rows import setting_rows
    from tui_agent.config.settings import load_settings

    def loaded(text: str) -> Any:
        file = folder / "config.toml"
        file.write_text(f"[recovery]\n{text}\n")
        return load_settings({}, environ={"AGENT_TUI_CONFIG": str(file)}, cwd=folder)

    try:
        loaded("fidget_limit = 0")
        wrong = ""
    except ConfigError as error:
        wrong = str(error)
    row = next(row for row in setting_rows(loaded("fidget_limit = 7")) if row.key == "recovery.fidget_limit")
    return {
        "switch": loaded("fidget = false").recovery.overrides(),
        "number": loaded("fidget_limit = 7").recovery.overrides(),
        "wrong": wrong,
        "row": [row.value, row.note],
    }


async def _session(folder: Path) -> dict[str, Any]:
    """A run in which it speaks: the journal, `why`, and the state that is saved and read back."""
    from pydantic import TypeAdapter

    from tests.runtime.session_harness import start_session
    from tui_agent.core.events import VerdictReached
    from tui_agent.core.recovery.engine import RecoveryState
    from tui_agent.frontend.why import explain
    from tui_agent.session.replay import Replay

    turns = [{"calls": [{"tool": "list_dir", "args": {"path": path}}]} for path in (".", "a", "b")]
    live = await start_session(folder, [*turns, "done"], files={})
    for name in ("a", "b"):
        (folder / "workspace" / name).mkdir()
    await live.run()
    reached = [event for event in live.of(VerdictReached) if event.detector == "fidget"]
    kept = TypeAdapter(RecoveryState)
    recovery = live.state.recovery
    again = kept.validate_json(kept.dump_json(recovery))
    await live.close()
    why = explain(Replay.open(live.session.folder), reached[-1].seq)
    return {
        "verdicts": [[event.iteration, event.rule, event.reason] for event in reached],
        "why": [list(count) for count in why.counts if count.detector == "fidget"],
        "read back": again.detectors == recovery.detectors and again.of(Fidget) == recovery.of(Fidget),
    }


def _heard() -> list[int]:
    from tests.recovery.player import Player, ok

    player = Player(operator_present=True)
    for _ in range(4):
        player.batch(ok())
    counted = player.state.of(Fidget).count
    player.feed(BackgroundEnded(id="1", how="exited"))
    player.answer("answer", "Go on.")
    return [counted, player.state.of(Fidget).jobs, player.state.of(Fidget).count]


def _documents() -> dict[str, Any]:
    from tests import test_rule_book

    settings = runpy.run_path(str(ROOT / "docs" / "write_configuration.py"))
    missed = []
    for name in ("test_the_book_has_a_row_for_each_detector_in_their_order", "test_each_detector_has_rules"):
        try:
            getattr(test_rule_book, name)()
        except AssertionError:
            missed.append(name)
    return {
        "keys": [line for line in settings["page"]().splitlines() if "`fidget" in line],
        "missed": missed,
    }


def main(folder: Path) -> None:
    """Print what the program makes of it."""
    joined()
    found = {
        "policies": _policies(),
        "contestants": _contestants(),
        "keys": _keys(folder),
        "session": asyncio.run(_session(folder)),
        "heard": _heard(),
        "documents": _documents(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
