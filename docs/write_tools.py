"""Writes `tui_agent/core/own_tools.py` from what the classes in `tui_agent/tools/` say about themselves.

`python docs/write_tools.py` writes it; with `--check` it says whether the file is current.
"""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import tui_agent.tools
from tui_agent.core.tool_facts import ToolFacts, told
from tui_agent.tools.tool import Tool, facts_of

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "tui_agent" / "core" / "own_tools.py"
HEAD = '''"""The facts of this program's own tools as plain values, by name: `core.tool_facts` reads them.

Written by docs/write_tools.py from the tools' classes; change it there.
"""

from __future__ import annotations

from typing import Any

'''


def own_tools() -> Iterator[type[Tool]]:
    """Find the classes of the tools: those with a name, an effect and a coroutine `run`."""
    for found in pkgutil.iter_modules(tui_agent.tools.__path__):
        module = import_module(f"tui_agent.tools.{found.name}")
        for one in vars(module).values():
            own = isinstance(one, type) and one.__module__ == module.__name__
            if (
                own
                and isinstance(vars(one).get("name"), str)
                and hasattr(one, "effect")
                and hasattr(one, "run")
            ):
                yield one


def row(facts: ToolFacts) -> dict[str, Any]:
    """Give the facts that are no defaults, enumerations as their text."""
    return (told(facts) or {}) | {
        "effect": str(facts.effect),
        "uses": {name: str(use) for name, use in facts.uses.items()},
    }


def module() -> str:
    """Make the text of the module, formatted."""
    rows = {str(tool.name): row(facts_of(tool)) for tool in own_tools()}
    text = f"{HEAD}ROWS: dict[str, dict[str, Any]] = {dict(sorted(rows.items()))!r}\n"
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def main(arguments: list[str]) -> int:
    """Write, or check."""
    new = module()
    if "--check" not in arguments:
        TARGET.write_text(new, "utf-8")
        return 0
    if TARGET.read_text("utf-8") == new:
        return 0
    sys.stderr.write(f"{TARGET.relative_to(ROOT)} is not current: run `python docs/write_tools.py`.\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
