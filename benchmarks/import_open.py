"""Opening a foreign session: a Claude Code recording of 3 MB must be events, judged and folded, in under 1.5 s.

    python benchmarks/import_open.py [FILE] [--megabytes 3] [--repeat 5]

Without a file a session of the wanted size is made up. Each part is timed by itself; the median counts. The
limit holds for the whole, in a process whose imports are done; the imports are shown beside it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

LIMIT = 1.5
"""Seconds."""


def made_up(path: Path, megabytes: float) -> None:
    """A session of reads, edits, and commands that fail now and then."""
    size, number, parent = 0, 0, None
    with path.open("w") as file:
        while size < megabytes * 2**20:
            number += 1
            for record in _exchange(number, parent):
                line = json.dumps(record) + "\n"
                size += len(line)
                file.write(line)
                parent = record["uuid"]


def _exchange(number: int, parent: str | None) -> list[dict[str, Any]]:
    at = f"2026-01-{1 + number // 2_000 % 27:02}T{number // 60 % 24:02}:{number % 60:02}:00.000Z"
    common = {"sessionId": "s", "cwd": "/w", "isSidechain": False, "timestamp": at}
    if number == 1:
        message: dict[str, Any] = {"role": "user", "content": "Make the tests pass"}
        return [{"type": "user", "uuid": "u1", "parentUuid": None, "message": message, **common}]
    failed = number % 7 == 0
    call = {
        "type": "tool_use",
        "id": f"t{number}",
        "name": "Bash",
        "input": {"command": f"pytest tests/{number}"},
    }
    usage = {"input_tokens": 10, "cache_read_input_tokens": 10_000, "output_tokens": 200}
    reply = {"role": "assistant", "id": f"m{number}", "model": "claude", "content": [call], "usage": usage}
    text = ("Exit code 1\n" if failed else "") + f"line of output {number}\n" * 60
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text, "is_error": failed}
    return [
        {"type": "assistant", "uuid": f"a{number}", "parentUuid": parent, "message": reply, **common},
        {
            "type": "progress",
            "uuid": f"p{number}",
            "parentUuid": f"a{number}",
            "data": {"x": "y" * 300},
            **common,
        },
        {
            "type": "user",
            "uuid": f"r{number}",
            "parentUuid": f"p{number}",
            "message": {"role": "user", "content": [result]},
            "toolUseResult": "Error" if failed else {"stdout": text},
            **common,
        },
    ]


def timed(work: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """Median seconds of `repeat` runs, and the last result."""
    seconds, result = [], None
    for _ in range(repeat):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), result


def main() -> int:
    """Print a table; 0 where the whole stays under the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--megabytes", type=float, default=3.0)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()

    start = time.perf_counter()
    from tui_agent.core.fold import fold
    from tui_agent.formats.exporters import export_session
    from tui_agent.formats.importers.load import judge, load_transcripts

    imports = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        path = args.file
        if path is None:
            path = Path(folder) / "session"
            made_up(path, args.megabytes)
        size = path.stat().st_size / 2**20
        read, runs = timed(lambda: load_transcripts(path), args.repeat)
        judged, imported = timed(lambda: judge(runs[0], "combined"), args.repeat)
        folded, _ = timed(lambda: fold(imported.events), args.repeat)
        page, _ = timed(lambda: export_session(imported.events, "html"), 1)
    whole = read + judged + folded
    print(f"{size:.1f} MB, {runs[0].report.records} records, {len(imported.events)} events")
    rows = [
        ("imports", imports),
        ("read", read),
        ("judge", judged),
        ("fold", folded),
        ("whole", whole),
        ("HTML", page),
    ]
    for name, seconds in rows:
        print(f"{name:>8}  {seconds * 1_000:8.1f} ms")
    print(f"limit {LIMIT} s: {'kept' if whole < LIMIT else 'MISSED'}")
    return 0 if whole < LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
