"""Hints against a corpus of what programs really say: how many of those given are right, and how many that are wanted
are given.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.tools.box import Box
from tui_agent.tools.failure_hints import hint_for
from tui_agent.tools.workspace import Workspace

FILES = {
    "data/sales.csv": "a,b\n1,2\n",
    "src/shop/__init__.py": "",
    "src/shop/cart.py": "def total(): return 1\n",
    "tests/test_cart.py": "from shop.cart import total\n",
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": "import unittest\nfrom calc import add\n",
    "report.py": "import sys\nprint('report')\n",
    "run.sh": "#!/bin/sh\necho run\n",
    "package.json": '{"name": "shop", "scripts": {"test": "node test.js", "build": "b", "start": "s"}}',
    "Makefile": "all:\n\ttrue\ntest:\n\tfalse\nlint:\n\ttrue\ndeploy: missing.cfg\n\ttrue\n",
    "README.md": "# Shop\n",
    "docs/installation.md": "Python 3.8\n",
    "templates/base.html": "<html>",
    "config/settings.toml": "a = 1\n",
    "index.js": "require('./lib/utils')\n",
    "lib/util.js": "module.exports = {}\n",
    "src/main.c": '#include "helper.h"\n',
    "include/helper.h": "int x;\n",
    "db/schema.sql": "create table users (id integer);\n",
}
CORPUS = tomllib.loads((Path(__file__).parent / "errors.toml").read_text(encoding="utf-8"))["error"]


@dataclass(frozen=True)
class Judged:
    """One error with the hint that came of it."""

    error: dict[str, Any]
    hint: str

    @property
    def right(self) -> bool:
        """The hint that is wanted, or none where none is."""
        wanted = self.error["hint"]
        return wanted in self.hint if wanted else not self.hint


def judged(folder: Path, hints: Callable[..., str]) -> list[Judged]:
    """Every error of the corpus, in a workspace named `shop` as those of the corpus were."""
    box = Box(folder / "shop", folder / "outputs")
    for path, content in FILES.items():
        box.put(path, content)
    found = []
    for error in CORPUS:
        script = box.put("report.py", FILES["report.py"])
        script.chmod(0o755 if "chmod +x report.py" in error["command"] else 0o644)
        makefile = box.put("Makefile", FILES["Makefile"])
        if "rm Makefile" in error["command"]:
            makefile.unlink()
        text = error["text"].replace("{workspace}", str(box.root))
        timed_out = text.startswith("The command did not end")
        message = text if timed_out else f"The command failed with exit code {error['exit_code']}.\n{text}"
        arguments = {"command": error["command"].replace("{workspace}", str(box.root))}
        found.append(Judged(error, hints("bash", arguments, message, Workspace(box.root))))
    return found


def figures(found: list[Judged]) -> tuple[float, float, str]:
    """Precision, recall, and both in words with every hint that is wrong or missing."""
    given = [each for each in found if each.hint]
    wanted = [each for each in found if each.error["hint"]]
    precision = sum(each.right for each in given) / max(1, len(given))
    recall = sum(each.right for each in wanted) / max(1, len(wanted))
    programs = len({each.error["program"] for each in found})
    really = sum(each["from"] == "run" for each in CORPUS)
    counts = f"{len(found)} errors of {programs} programs, {really} of them really run"
    lines = [
        f"{counts}: {len(given)} hints, precision {precision:.1%}; {len(wanted)} wanted, recall {recall:.1%}"
    ]
    for each in found:
        if not each.right:
            wants, said = each.error["hint"] or "none", each.hint or "none"
            lines.append(
                f"  {each.error['program']}: {each.error['command'][:80]!r} wants {wants!r}, has {said!r}"
            )
    return precision, recall, "\n".join(lines)


def test_hints_are_right_and_seldom_missing(tmp_path: Path) -> None:
    precision, recall, words = figures(judged(tmp_path, hint_for))
    sys.stdout.write(f"{words}\n")
    assert len(CORPUS) >= 150
    assert precision >= 0.98, words
    assert recall >= 0.9, words


def test_no_hint_advises_what_has_just_failed(tmp_path: Path) -> None:
    for each in judged(tmp_path, hint_for):
        assert f'bash {{"command": "{each.error["command"]}"}}' not in each.hint, each
        assert f"run it as '{each.error['command']}'" not in each.hint, each


def test_no_package_is_advised_for_a_module_of_the_workspace(tmp_path: Path) -> None:
    for each in judged(tmp_path, hint_for):
        if "pip install" in each.hint:
            assert not any(name in each.hint for name in ("shop", "calc", "report", "test_")), each
