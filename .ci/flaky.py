"""Flaky tests of `.ci/run`: what failed is run once more, one test at a time, and what passes then goes on record.

    flaky.py run RECORD RUN CACHE …   run pytest with these arguments; exit code of what failed twice, or 0
    flaky.py report RECORD RUN        name what was flaky in this run; exit code 1 when one was so in an earlier run too

RECORD is a text file that outlives the run, a line for each time: the run, the Python and the test. A test that does
not depend on speed any more is taken off the record by deleting its lines. RUN tells runs apart, CACHE is pytest's.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ALLOWED = 1
"""Runs in which a test may be flaky before it fails one."""


def run(record: Path, run: str, cache: Path, *arguments: str) -> int:
    """Run the tests, then what failed once more, and put on record what passed that time."""
    command = [sys.executable, "-m", "pytest", "-q", "-o", f"cache_dir={cache}", *arguments]
    code = subprocess.run(command, check=False).returncode
    if code != 1:
        return code
    first = _failed(cache)
    print("=== What failed, once more, one at a time", flush=True)
    again = [*command, "-n", "0", "--last-failed", "--last-failed-no-failures", "none"]
    code = subprocess.run(again, check=False).returncode
    if code in (0, 1):
        flaky = sorted(first - _failed(cache))
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        with record.open("a", encoding="utf-8") as file:
            file.write("".join(f"{run} {version} {test}\n" for test in flaky))
    return code


def report(record: Path, run: str) -> int:
    """Print what was flaky in this run, with the number of runs in which it was."""
    runs: dict[str, set[str]] = {}
    for line in record.read_text(encoding="utf-8").splitlines() if record.exists() else ():
        begun, _, test = line.split(" ", 2)
        runs.setdefault(test, set()).add(begun)
    flaky = {test: len(begun) for test, begun in sorted(runs.items()) if run in begun}
    for test, times in flaky.items():
        print(f"FLAKY {test} (in {times} {'run' if times == 1 else 'runs'} on record)")
    return int(any(times > ALLOWED for times in flaky.values()))


def _failed(cache: Path) -> set[str]:
    """Ids of the tests that pytest has as failed."""
    file = cache / "v" / "cache" / "lastfailed"
    return set(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else set()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["run", record, begun, cache, *arguments]:
            sys.exit(run(Path(record), begun, Path(cache), *arguments))
        case ["report", record, begun]:
            sys.exit(report(Path(record), begun))
        case _:
            sys.exit(__doc__)
