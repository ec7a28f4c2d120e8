"""Writes docs/POLICIES.md: what each policy would have said to recorded runs, with and without an operator.

`python docs/write_policies.py NAME=FOLDER…` measures one set of recordings a name; FOLDER may be a pattern of files
(`'multiturn=runs/*multiturn*.json'`, in quotes) and NAME= may be left out. Nothing is run again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tui_agent.analysis.runs import FileReport, Presence, analyze
from tui_agent.analysis.summary import Summary, summaries
from tui_agent.analysis.table import failure_table, percent, verdict_table
from tui_agent.core.names import POLICIES

TARGET = Path(__file__).with_name("POLICIES.md")

INTRODUCTION = """\
# Policies over recorded runs

<!-- Written by docs/write_policies.py. Do not edit. -->

Runs of other agents, recorded by others and graded by their own benchmarks, were imported and judged by each of the
five policies. Nothing was run again: a verdict says what the policy would have done at that point, and the recording
goes on as it did.

- A **false trip** is a verdict on a run that its grade calls solved; a **true trip** one on a run that it calls
  unsolved. A cell reads *runs (false/true trips)*; runs without a grade count in the first number only.
- **Pivot or stronger** counts runs that the policy would have interrupted at least once: asked for another approach,
  asked the operator, ended with a partial answer, or stopped. `guide` only adds to the note and interrupts nothing.
- **First at step** is the median step of the recording in which these runs were first interrupted.
- **With an operator**: somebody could have been asked. **Without**: nobody could.
- A true trip is not yet a good one: an unsolved run may fail for reasons that no recovery can see. What counts is how
  many true trips there are for a false one, and how many unsolved runs are reached at all.

Measured again with:

```sh
python docs/write_policies.py NAME=FOLDER…
```
"""


@dataclass(frozen=True)
class Recordings:
    """One set: its name in the document, and its files and folders."""

    name: str
    paths: tuple[Path, ...]


def document(sets: Sequence[Recordings]) -> str:
    """The whole document. Raises `FileNotFoundError` where a set holds no recording."""
    return "\n".join([INTRODUCTION, *(_section(one) for one in sets)]).rstrip() + "\n"


def _section(recordings: Recordings) -> str:
    presences: tuple[Presence, ...] = ("present", "absent")
    measured = {presence: analyze(recordings.paths, POLICIES, present=presence) for presence in presences}
    totals = {presence: summaries(files) for presence, files in measured.items()}
    parts = [f"## {recordings.name}", _described(measured["absent"], totals["absent"][0])]
    for presence, heading in (("present", "With an operator"), ("absent", "Without an operator")):
        parts += [f"### {heading}", verdict_table(totals[presence], markdown_table)]
    parts += ["### Failures", failure_table(totals["absent"], markdown_table)]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _described(files: Sequence[FileReport], total: Summary) -> str:
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
            "No recordings are named. Give folders: python docs/write_policies.py NAME=FOLDER…\n"
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
