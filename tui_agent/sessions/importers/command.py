"""`agent-tui sessions import`: the options and the work, for the front door to hang in.

What is said goes to the given streams; nothing is decided here about formats.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="FILE|DIR", help="recordings, or folders of them"
    )
    parser.add_argument("--policy", help="judge foreign runs by this policy (default: combined)")


def main(args: argparse.Namespace, sessions: Path) -> int:
    """Import into the folder `sessions`. 0: all files; 1: some could not be read; 2: nothing to read."""
    from tui_agent.recovery.policy import PRESETS
    from tui_agent.sessions.export.plain import visible
    from tui_agent.sessions.importers.load import find_transcripts, save

    if args.policy is not None and args.policy not in PRESETS:
        sys.stderr.write(f"There is no policy {visible(args.policy)}. Choose one of {', '.join(PRESETS)}.\n")
        return 2
    files = find_transcripts(args.paths)
    if not files:
        sys.stderr.write("Nothing to import: no .json, .jsonl or .traj file there. Name a recording.\n")
        return 2
    failed = 0
    for file in files:
        saved = save(file, sessions, args.policy)
        if saved.error is not None:
            failed += 1
            sys.stderr.write(f"{visible(str(saved.error))}\n")
            continue
        new = len(saved.sessions) - saved.present
        sys.stdout.write(f"{visible(str(file))}: {new} new, {saved.present} present before\n")
        if saved.report is not None:
            sys.stdout.write(f"  {visible(saved.report.summary())}\n")
        for session in saved.sessions:
            sys.stdout.write(f"  {session}\n")
    return 1 if failed else 0
