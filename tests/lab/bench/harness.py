"""Runs of the benchmark in a test's own folder."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tui_agent.lab.bench.case import Case, all_cases
from tui_agent.lab.bench.operators import Kind
from tui_agent.lab.bench.policies import CONTESTANTS
from tui_agent.lab.bench.run import RealModel, Row, Unit, run_unit

CASES = {case.id: case for case in all_cases()}


async def ran(
    folder: Path,
    case: str | Case,
    policy: str = "combined",
    behaviour: str = "adapts-when-hinted",
    operator: Kind = "absent",
    *,
    seed: int = 1,
    real: RealModel | None = None,
) -> Row:
    """One run; its journal is in `folder`/journal."""
    chosen = CASES[case] if isinstance(case, str) else case
    unit = Unit(chosen.id, behaviour, seed)
    return await run_unit(
        chosen, unit, CONTESTANTS[policy], operator, folder / "scratch", folder / "journal", real
    )


def journal(folder: Path) -> list[dict[str, Any]]:
    """The events of the run in this folder."""
    lines = (folder / "journal" / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


_TIMED = {"duration", "session_id", "allowed_by"}
"""Fields of time and chance; what allowed a call says whether there was time to judge it."""


def without_times(value: Any, place: Path) -> Any:
    """An event without what differs from run to run although nothing else does: times and places."""
    if isinstance(value, dict):
        return {key: without_times(one, place) for key, one in value.items() if key not in _TIMED}
    if isinstance(value, list):
        return [without_times(one, place) for one in value]
    if isinstance(value, str):
        return re.sub(r"\d+\.\d+s", "<time>", value.replace(str(place), "<place>"))
    return value
