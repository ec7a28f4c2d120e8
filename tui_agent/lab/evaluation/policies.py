"""Writes docs/lab/POLICIES.md: what each policy would have said to recorded runs, with and without an operator.

`python -m tui_agent.lab.evaluation.policies NAME=FOLDER…` measures one set of recordings a name.
FOLDER may be a pattern of files (`'multiturn=runs/*multiturn*.json'`, in quotes) and NAME= may be left out. Nothing is
run again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tui_agent.core.names import POLICIES
from tui_agent.lab.analysis.runs import FileReport, Presence, analyze
from tui_agent.lab.analysis.summary import PolicySummary, Trips, summaries
from tui_agent.lab.analysis.table import failure_table, percent, verdict_table
from tui_agent.lab.evaluation import PAGES

TARGET = PAGES / "POLICIES.md"

INTRODUCTION = """\
# Policies over recorded runs

<!-- Written by tui_agent/lab/evaluation/policies.py. Do not edit. -->

Runs of other agents, recorded by others and graded by their own benchmarks, were imported and judged by each of the
five policies. Nothing was run again: a verdict says what the policy would have done at that point, and the recording
goes on as it did.

- A **false trip** is a verdict on a run that its grade calls solved; a **true trip** one on a run that it calls
  unsolved. A cell reads *runs (false/true trips)*; runs without a grade count in the first number only.
- **Pivot or stronger** counts runs that the policy would have interrupted at least once: asked for another approach,
  asked the operator, begun anew (`restart`), ended with a partial answer, or stopped. `guide` only adds to the note
  and interrupts nothing.
- **First at step** is the median step of the recording in which these runs were first interrupted.
- **With an operator**: somebody could have been asked. **Without**: nobody could.
- **Ended** are runs with a verdict that ends a run: a partial answer, or a stop.
- A true trip is not yet a good one: an unsolved run may fail for reasons that no recovery can see. What counts is how
  many true trips there are for a false one, and how many unsolved runs are reached at all.
- The sentences below each table are made from its figures. A policy *tells runs apart* if the share of unsolved runs
  that it interrupts is at least ten points above that of solved ones.

Measured again with:

```sh
python -m tui_agent.lab.evaluation.policies NAME=FOLDER…
```
"""


@dataclass(frozen=True)
class Recordings:
    """One set: its name in the document, and its files and folders."""

    name: str
    paths: tuple[Path, ...]


def document(sets: Sequence[Recordings]) -> str:
    """The whole document. Raises `FileNotFoundError` if a set holds no recording."""
    return "\n".join([INTRODUCTION, *(_section(one) for one in sets)]).rstrip() + "\n"


def _section(recordings: Recordings) -> str:
    headings: dict[Presence, str] = {"present": "With an operator", "absent": "Without an operator"}
    measured = {presence: analyze(recordings.paths, POLICIES, present=presence) for presence in headings}
    totals = {presence: summaries(files) for presence, files in measured.items()}
    parts = [f"## {recordings.name}", _described(measured["absent"], totals["absent"][0])]
    for presence, heading in headings.items():
        table = verdict_table(totals[presence], markdown_table)
        parts += [f"### {heading}", table, verdicts_in_words(totals[presence])]
    parts += ["### Failures", failure_table(totals["absent"], markdown_table)]
    parts.append(failures_in_words(totals["absent"]))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _described(files: Sequence[FileReport], total: PolicySummary) -> str:
    sources = sorted({row.source for file in files for row in file.rows})
    models = sorted({row.model for file in files for row in file.rows} - {""})
    facts = [
        f"{total.runs:,} runs ({', '.join(sources)})",
        f"{total.solved:,} solved",
        f"{total.unsolved:,} unsolved",
        f"{total.tool_calls:,} calls, {percent(total.error_rate)} of them failed",
    ]
    if models:
        facts.append(f"models: {', '.join(models)}")
    empty = sum(file.empty for file in files)
    if empty:
        facts.append(f"{empty} empty runs left out")
    unread = sum(bool(file.error) for file in files)
    if unread:
        facts.append(f"{unread} files could not be read")
    return "; ".join(facts) + "."


TELLS_APART = 0.10
"""Share of unsolved runs interrupted, less the share of solved ones, from which a policy tells them apart."""


def verdicts_in_words(totals: Sequence[PolicySummary]) -> str:
    """The worth of each policy's verdicts on these runs: a list, and the conclusion from it."""
    lines = [f"- `{total.policy}` {_reach(total)}." for total in totals]
    gains = {total.policy: _gain(total) for total in totals if total.solved and total.unsolved}
    if not gains:
        return "\n".join(lines)
    telling = [policy for policy, gain in gains.items() if gain >= TELLS_APART]
    harmful = [policy for policy, gain in gains.items() if gain < 0]
    most = max(totals, key=lambda total: total.interrupted.true_trips)
    conclusion = (
        f"Solved and unsolved runs are told apart by {_listed(telling)}."
        if telling
        else "No policy tells solved from unsolved runs here: the one that interrupts most of the unsolved ones "
        f"reaches {_share(most.interrupted.true_trips, most.unsolved)} of them."
    )
    if harmful:
        verb = "interrupts" if len(harmful) == 1 else "interrupt"
        conclusion += (
            f" {_listed(harmful)} {verb} a larger share of the solved runs than of the unsolved ones."
        )
    return "\n".join([*lines, "", conclusion])


def _reach(total: PolicySummary) -> str:
    interrupted, ended = total.interrupted, total.ended
    if not interrupted.runs:
        return "interrupts no run"
    return f"interrupts {_of_graded(interrupted, total)}, and ends {_of_graded(ended, total)}"


def _of_graded(trips: Trips, total: PolicySummary) -> str:
    if not trips.runs:
        return "none"
    parts = []
    if total.solved:
        parts.append(f"{_share(trips.false_trips, total.solved)} of the solved runs")
    if total.unsolved:
        parts.append(f"{_share(trips.true_trips, total.unsolved)} of the unsolved ones")
    return " and ".join(parts) or f"{trips.runs:,} of {total.runs:,} runs"


def _share(part: int, whole: int) -> str:
    return percent(part / whole) if part else "none"


def _gain(total: PolicySummary) -> float:
    interrupted = total.interrupted
    return interrupted.true_trips / total.unsolved - interrupted.false_trips / total.solved


def _listed(policies: Sequence[str]) -> str:
    names = [f"`{policy}`" for policy in policies]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def failures_in_words(totals: Sequence[PolicySummary]) -> str:
    """The fate of the failures that `combined` counts."""
    total = next((one for one in totals if one.policy == "combined"), None)
    if total is None or not total.failures:
        return "Nothing failed."
    same, other, rest = (
        percent(part / total.failures)
        for part in (total.recovered_same_call, total.recovered_worked_round, total.unrecovered)
    )
    return (
        f"Of the failures that `combined` counts {same} ended with a success of the same call and {other} were worked "
        f"round; {rest} stayed open."
    )


def markdown_table(head: Sequence[str], body: Sequence[Sequence[str]], left: int) -> str:
    """A table whose first `left` columns begin at the left."""
    rules = ["---" if position < left else "---:" for position in range(len(head))]
    lines = (head, rules, *body)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def recordings_of(argument: str) -> Recordings:
    """`NAME=FOLDER`, `NAME=PATTERN` or either without a name. Raises `FileNotFoundError`."""
    name, named, place = argument.partition("=")
    place = place if named else name
    path = Path(place)
    paths = (path,) if path.exists() else tuple(sorted(path.parent.glob(path.name)))
    if not paths:
        raise FileNotFoundError(place)
    return Recordings(name if named else path.stem, paths)


def main(arguments: Sequence[str]) -> int:
    """Measure and write. 2: nothing was named, or something that is not there."""
    if not arguments:
        sys.stderr.write(
            "No recordings are named. Give folders: python -m tui_agent.lab.evaluation.policies NAME=FOLDER…\n"
        )
        return 2
    try:
        text = document([recordings_of(argument) for argument in arguments])
    except FileNotFoundError as error:
        sys.stderr.write(f"{error}: there are no recordings. Name a folder or a pattern of files.\n")
        return 2
    TARGET.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
