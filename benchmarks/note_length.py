"""How long the notes are that a policy would have written over recorded runs: mean, median and longest in characters,
and which rules wrote them.

Each run is judged as `analyze` judges it, with nobody there unless `--operator` is given; each note counts once.

    python benchmarks/note_length.py [--policy combined] [--operator] [--sample 3] FILE|FOLDER…
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tui_agent.core.events import NotePrepared
from tui_agent.formats.importers.load import find_transcripts, judge, load_transcripts
from tui_agent.formats.importers.transcript import TranscriptError


def notes(paths: list[Path], policy: str, *, operator: bool) -> Iterator[NotePrepared]:
    """Every note with a text, in the order of the files; what cannot be read is left out."""
    for path in find_transcripts(paths):
        try:
            runs = load_transcripts(path)
        except TranscriptError:
            continue
        for run in runs:
            for event in judge(run, policy, operator_present=operator).events:
                if isinstance(event, NotePrepared) and event.text:
                    yield event


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--policy", default="combined")
    parser.add_argument("--operator", action="store_true")
    parser.add_argument("--sample", type=int, default=0, help="notes to print, evenly spread")
    chosen = parser.parse_args()
    found = list(notes(chosen.paths, chosen.policy, operator=chosen.operator))
    lengths = [len(note.text or "") for note in found]
    if not lengths:
        print("no note")
        return
    print(
        f"{len(lengths):,} notes: mean {statistics.mean(lengths):.0f}, median {statistics.median(lengths):.0f}, "
        f"longest {max(lengths):,} characters"
    )
    for rule, count in Counter(rule for note in found for rule in note.rules).most_common():
        print(f"  {rule:<22} {count:>6,}")
    for note in found[:: max(1, len(found) // chosen.sample)][: chosen.sample] if chosen.sample else ():
        print(f"\n--- {', '.join(note.rules)}\n{note.text}")


if __name__ == "__main__":
    main()
