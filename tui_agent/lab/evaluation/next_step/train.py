"""Fits the estimate of the next step's success, tests it, and writes what the package uses. The README.md beside the
data (docs/lab/next_step) explains it.

    python -m tui_agent.lab.evaluation.next_step.train FOLDER...  count recorded runs anew, write all
    python -m tui_agent.lab.evaluation.next_step.train            fit and write from data.csv
    python -m tui_agent.lab.evaluation.next_step.train --check    1: not what data.csv gives

Only the standard library and the package are needed; the same input gives the same files.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from pathlib import Path

from tui_agent.core.recovery import next_step_table
from tui_agent.core.recovery.next_step import HIGHEST_RECORD, LONGEST_STALL, LOWEST_RECORD, Cause
from tui_agent.lab.evaluation import PAGES
from tui_agent.lab.evaluation.next_step.counting import Row, count, read_data, weights, write_data
from tui_agent.lab.evaluation.next_step.evaluation import curve, holds, page
from tui_agent.lab.evaluation.next_step.fitting import NAMES, fit

HERE = PAGES / "next_step"
DATA = HERE / "data.csv"
TABLE = Path(next_step_table.__file__)


def table(rows: list[Row]) -> str:
    """The module with the coefficients and the numbers of recorded steps."""
    values = dict(zip(NAMES, (round(value, 4) for value in fit(rows, weights(rows))), strict=True))
    stall = [0.0]
    for length in range(1, LONGEST_STALL + 1):
        stall.append(round(stall[-1] + values[f"stall ≥ {length}"], 4))
    causes = {cause.value: values.get(cause.value, 0.0) for cause in Cause}
    return f'''"""The figures of `next_step`, fitted on recorded runs.

Written by tui_agent/lab/evaluation/next_step/train.py; do not edit.
"""

INTERCEPT = {values["intercept"]}
STALL = {tuple(stall)}
"""By the length of the stall, from 0."""
REPEATED = {values["repeated"]}
CAUSE = {{{", ".join(f'"{name}": {value}' for name, value in causes.items())}}}
RECORD = {values["record"]}
"""For each half step of the record."""
EVIDENCE = {values["evidence"]}
"""In a stall, for each doubling of the run's own successes."""
HOLDS_BELOW = {holds(rows)}
"""Below it the chance came true in every recorded set, in runs of which no step has succeeded."""

STEPS: dict[str, tuple[int, ...]] = {{
{_steps(rows)}
}}
"""Recorded steps by stall, repetition and cause; one number for each value of the record, the lowest first."""
'''


def _steps(rows: list[Row]) -> str:
    steps: dict[str, Counter[int]] = defaultdict(Counter)
    for row in rows:
        steps[f"{row.cell.stall} {int(row.cell.repeated)} {row.cell.cause.value}"][row.cell.record] += (
            row.steps
        )
    records = range(LOWEST_RECORD, HIGHEST_RECORD + 1)
    return "\n".join(
        f'    "{name}": ({", ".join(str(steps[name][record]) for record in records)}),'
        for name in sorted(steps)
    )


def main(arguments: list[str]) -> int:
    """Exit status: 0, or 1 if a file is not current under `--check`."""
    checking = arguments == ["--check"]
    if not checking and arguments:
        DATA.write_text(write_data(count([Path(argument) for argument in arguments])))
    rows = read_data(DATA.read_text())
    written = {TABLE: table(rows), HERE / "evaluation.md": page(rows), HERE / "reliability.svg": curve(rows)}
    stale = [path for path, text in written.items() if not path.is_file() or path.read_text() != text]
    if checking:
        for path in stale:
            sys.stderr.write(
                f"{path.name} is not what data.csv gives: run `python -m tui_agent.lab.evaluation.next_step.train`.\n"
            )
        return 1 if stale else 0
    for path in stale:
        path.write_text(written[path])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
