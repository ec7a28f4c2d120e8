"""`agent-tui analyze`: recorded runs, ours or others', judged by any policy."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tui_agent.cli.options import Parser
from tui_agent.core.names import POLICIES

_EXAMPLE = """
agent-tui analyze runs/                          all five policies over every recording in a folder
agent-tui analyze session.jsonl --policy combined --format json
agent-tui analyze runs/ --policy combined --operator absent     as if nobody could have been asked"""


def parser() -> Parser:
    made = Parser(
        "analyze",
        "What would each recovery policy have said to these runs? Reads our own sessions and the recordings of\n"
        "other agents; nothing is run again. Grades come from the recordings, or from a resolved.json beside them.\n"
        "The policies judge as they come, so that tables can be compared: [recovery] of your configuration has no say\n"
        "here. `agent-tui replay FILE --policy NAME` judges one recording with it.",
        _EXAMPLE,
    )
    made.add_argument(
        "paths", nargs="+", type=Path, metavar="FILE|DIR", help="recorded runs, or folders of them"
    )
    made.add_argument(
        "--policy",
        action="append",
        choices=[*POLICIES, "all"],
        help="judge by this policy; may be repeated (default: all five)",
    )
    made.add_argument("--format", choices=["text", "json", "csv"], default="text", help="default: text")
    made.add_argument("--jobs", type=int, metavar="N", help="processes (default: one a core)")
    made.add_argument(
        "--operator",
        choices=["recorded", "present", "absent"],
        default="recorded",
        help="whether somebody could have been asked (default: as in the recording)",
    )
    made.add_argument(
        "--patterns", type=int, default=10, metavar="N", help="show the N most frequent errors (default 10)"
    )
    made.add_argument("--all", action="store_true", help="list every run, also those without a verdict")
    return made


def main(arguments: Sequence[str]) -> int:
    """Print the tables. 0: every file was read; 1: some could not be (they are named); 2: nothing to read."""
    from tui_agent.analysis import table
    from tui_agent.analysis.runs import analyze

    options = parser().parse(arguments)
    policies = tuple(dict.fromkeys(options.policy or POLICIES))
    if "all" in policies:
        policies = POLICIES
    missing = [path for path in options.paths if not path.exists()]
    if missing:
        sys.stderr.write(f"agent-tui analyze: {missing[0]} does not exist. Check the name.\n")
        return 2
    progress = _bar if sys.stderr.isatty() else None
    try:
        files = analyze(options.paths, policies, options.jobs, present=options.operator, progress=progress)
    except FileNotFoundError:
        sys.stderr.write(
            "agent-tui analyze: no .json, .jsonl or .traj file there. Name a recorded run, or a folder of them.\n"
        )
        return 2
    finally:
        if progress is not None:
            sys.stderr.write("\r\x1b[K")
    match options.format:
        case "json":
            text = table.as_json(files)
        case "csv":
            text = table.as_csv(files)
        case _:
            text = table.as_text(files, everything=options.all, patterns=options.patterns)
    sys.stdout.write(text)
    return 1 if any(file.error for file in files) else 0


def _bar(done: int, total: int, path: Path) -> None:
    filled = 30 * done // total
    name = path.name if path.name.isprintable() else "…"
    sys.stderr.write(f"\r\x1b[K[{'█' * filled}{'·' * (30 - filled)}] {done}/{total} {name[:40]}")
    sys.stderr.flush()
