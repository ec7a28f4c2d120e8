"""Counts how models go on after a failing step in recorded runs, and writes what the benchmark's machines do by it.

    python -m tui_agent.lab.evaluation.behaviours FOLDER...  count recorded runs anew, write all
    python -m tui_agent.lab.evaluation.behaviours            write from behaviours.csv
    python -m tui_agent.lab.evaluation.behaviours --check    1: not what behaviours.csv gives

Only counts are kept, no text of any run. Only the standard library and the package are needed.
"""

from __future__ import annotations

import csv
import difflib
import io
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tui_agent.core import events
from tui_agent.core.recovery.iteration import result_of_call
from tui_agent.core.recovery.policy import PRESETS
from tui_agent.lab.evaluation import PAGES
from tui_agent.lab.evaluation.next_step.counting import recordings, source_of

DATA = PAGES / "bench" / "behaviours.csv"
TARGET = Path(__file__).resolve().parents[1] / "bench" / "behaviours.toml"

MOVES = ("same", "near", "alternate", "other", "adapt", "form", "end")
LONGEST = 3
"""Failing steps in a row that are told apart; more count as so many."""
ALIKE = 0.85
"""Likeness of arguments from which on a call is nearly the same."""
GROUPS = {
    "strong": ("swebench-gemini-3-pro",),
    "middling": ("intercode-bash-gpt-4", "intercode-sql-gpt-4", "intercode-ctf"),
    "weak": ("intercode-bash-gpt-3.5", "intercode-sql-gpt-3.5", "intercode-python-gpt-3.5"),
    "weakest": ("intercode-bash-vicuna", "intercode-sql-vicuna"),
}


def iterations(
    recorded: list[events.Event],
) -> Iterator[tuple[list[events.ToolCall], list[events.ToolResult], bool]]:
    """Each reply's calls and results, and whether its text was all there was."""
    calls: list[events.ToolCall] = []
    results: list[events.ToolResult] = []
    replied = False
    for event in recorded:
        match event:
            case events.ReplyFinished():
                if replied:
                    yield calls, results, not calls
                calls, results, replied = list(event.calls), [], True
            case events.ToolResult():
                results.append(event)
    if replied:
        yield calls, results, not calls


def count_run(recorded: list[events.Event]) -> Iterator[tuple[int, str]]:
    """The move after each failing step, with the number of failing steps in a row."""
    steps = list(iterations(recorded))
    row = 0
    before: events.ToolCall | None = None
    for place, (calls, results, _) in enumerate(steps):
        passed = [result_of_call(one, PRESETS["combined"]).passed for one in results]
        if not calls or not results or any(passed):
            if calls:
                row, before = 0, calls[0]
            continue
        row += 1
        last = calls[0]
        if place + 1 == len(steps):
            yield min(row, LONGEST), "end"
            return
        following, outcome, text_only = steps[place + 1]
        if text_only:
            yield min(row, LONGEST), "end" if place + 2 == len(steps) else "form"
            before = last
            continue
        succeeded = any(result_of_call(one, PRESETS["combined"]).passed for one in outcome)
        move = _move(last, before, following[0], succeeded=succeeded)
        yield min(row, LONGEST), move
        before = last


def _move(
    last: events.ToolCall, before: events.ToolCall | None, following: events.ToolCall, *, succeeded: bool
) -> str:
    if (last.name, last.arguments) == (following.name, following.arguments):
        return "same"
    if before is not None and (before.name, before.arguments) == (following.name, following.arguments):
        return "alternate"
    if succeeded:
        return "adapt"
    alike = difflib.SequenceMatcher(None, last.arguments[:2_000], following.arguments[:2_000]).ratio()
    return "near" if last.name == following.name and alike >= ALIKE else "other"


def count(folders: list[Path]) -> Counter[tuple[str, int, str]]:
    counted: Counter[tuple[str, int, str]] = Counter()
    for path, run in recordings(folders):
        source = source_of(path, run.source)
        group = next((name for name, sets in GROUPS.items() if source.startswith(sets)), "")
        if group:
            counted.update((group, *one) for one in count_run(run.events))
    return counted


def write_data(counted: Counter[tuple[str, int, str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["group", "in_a_row", "move", "count"])
    writer.writerows([*key, number] for key, number in sorted(counted.items()))
    return text.getvalue()


def read_data(text: str) -> Counter[tuple[str, int, str]]:
    return Counter({
        (line["group"], int(line["in_a_row"]), line["move"]): int(line["count"])
        for line in csv.DictReader(io.StringIO(text))
    })  # fmt: skip


def table(counted: Counter[tuple[str, int, str]]) -> str:
    """The file that the machines read."""
    lines = [
        "# How models go on after failing steps: shares of what followed, by failing steps in a row.",
        "# Written by tui_agent/lab/evaluation/behaviours.py from docs/lab/bench/behaviours.csv; do not edit.",
    ]
    for group in GROUPS:
        lines += ["", f"[{group}]"]
        for row in range(1, LONGEST + 1):
            numbers = {move: counted[group, row, move] for move in MOVES}
            total = sum(numbers.values())
            shares = ", ".join(f"{move} = {number / max(1, total):.4f}" for move, number in numbers.items())
            lines.append(f"after_{row} = {{ {shares} }}  # {total:,} steps")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Exit status: 0, or 1 if a file is not current under `--check`."""
    checking = arguments == ["--check"]
    if not checking and arguments:
        DATA.write_text(write_data(count([Path(argument) for argument in arguments])))
    written = table(read_data(DATA.read_text()))
    if checking:
        return 0 if TARGET.is_file() and TARGET.read_text() == written else 1
    TARGET.write_text(written)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
