"""What judging a command costs, over its length and its nesting: processor time of one judgement, and its growth.

`python benchmarks/permission_judge.py` prints a table. Each kind of text is judged at four lengths, the last of which
is the longest that is read at all. "factor" is the time for twice the length, the median of three; "-" where the
judgement was given up, which it must be within the 50 ms that are promised. The exit code is 1 where one took longer.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from tui_agent.core.names import Decision
from tui_agent.permissions.budget import SECONDS
from tui_agent.permissions.commands import LONGEST
from tui_agent.permissions.findings import Judgement
from tui_agent.permissions.judge import Permissions
from tui_agent.permissions.rules import parse_rule

KINDS = {
    "ls and words": ("ls ", "src ", ""),
    "lists": ("", "ls; ", ""),
    "pipes": ("", "cat a | ", "wc"),
    "open pipes": ("", "a|", ""),
    "redirections": ("ls ", ">a ", ""),
    "wildcards": ("cat ", "*/", "x"),
    "cd": ("", "cd a; ", "ls"),
    "nice": ("", "nice ", "ls"),
    "env": ("", "env ", "ls"),
    "sudo": ("", "sudo ", "rm x"),
    "xargs": ("", "xargs ", "ls"),
    "timeout": ("", "timeout 1 ", "ls"),
    "eval": ("", 'eval "a b" ', ""),
    "bash -c": ("", "bash -c 'ls x' ", ""),
    "brackets": ("cat ", "[a", ""),
    "braces": ("cat x", "{,", ""),
    "groups": ("", "(", ""),
    "substitutions": ("", "$(", ""),
    "loops": ("", "while a; do ", ""),
    "arrays": ("", "a=(", ""),
    "here-documents": ("", "<<a ", ""),
}
ALLOW = ("bash(ls *)", "bash(cat *)", "bash(pytest *)", "bash(npm run *)")
DENY = ("bash(rm -rf *)", "read_file(**/.env)", "edit_file(*.lock)", "bash(git push *)")
LENGTHS = (LONGEST // 8, LONGEST // 4, LONGEST // 2, LONGEST)


def judged(rules: Permissions, command: str) -> tuple[float, Judgement]:
    """The median time of three judgements, in seconds of the processor, and what they said."""
    times: list[float] = []
    for _ in range(3):
        began = time.thread_time()
        judgement = rules.judge("bash", "command", {"command": command})
        times.append(time.thread_time() - began)
    return median(times), judgement


def main() -> int:
    """Print the table; 1 where a judgement took longer than is promised."""
    with tempfile.TemporaryDirectory() as folder:
        for name in "abcd":
            (Path(folder) / name).symlink_to(".")
        rules = [parse_rule(Decision.ALLOW, text, "") for text in ALLOW]
        rules += [parse_rule(Decision.DENY, text, "") for text in DENY]
        permissions = Permissions(rules, Path(folder))
        ordinary, _ = judged(permissions, "cd src && pytest -q tests/test_a.py 2>&1 | tail -3")
        print(f"an ordinary command: {ordinary * 1000:.2f} ms")
        print(f"{'':16}" + "".join(f"{length:>9,} c." for length in LENGTHS) + "   factor")
        longest = 0.0
        for kind, (head, unit, tail) in KINDS.items():
            times: list[float] = []
            cells: list[str] = []
            given_up = False
            for length in LENGTHS:
                taken, found = judged(permissions, head + unit * ((length - 10) // len(unit)) + tail)
                times.append(taken)
                given_up = any(one.unjudged for one in found.findings)
                cells.append(f"{taken * 1000:8.1f} {'asks' if given_up else 'ms'}")
            factor = "-" if given_up else f"{times[-1] / times[-2]:.1f}"
            longest = max(longest, *times)
            print(f"{kind:16}" + "".join(f"{cell:>12}" for cell in cells) + f"   {factor}")
        times_longer = f"{longest / ordinary:.0f} times the ordinary one"
        print(f"longest: {longest * 1000:.1f} ms of {SECONDS * 1000:.0f} ms, {times_longer}")
    return int(longest > SECONDS)


if __name__ == "__main__":
    sys.exit(main())
