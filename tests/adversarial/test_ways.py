"""The same attacks from everything that runs in the sandbox: commands, commands in the background, formatters and
checkers, servers of a checkout; under both mechanisms, as whoever runs the tests and as another user.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.adversarial.attack import Attack, attacks
from tests.mcp.harness import call, turns
from tests.runtime.session_harness import start_session
from tests.sandbox.boxes import folder_at_home, needed
from tests.sandbox.ways import WAYS, got_out
from tui_agent.sandbox import choose
from tui_agent.sandbox.mechanisms import Mechanism

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
TRIED = (
    "plants settings and hooks of git, of editors and agents; reads secrets, environments, a terminal; writes outside; "
    "ends a process; reaches a service's socket"
)
FELL = {
    "server": "what a server of the workspace planted stayed: nothing looked after it",
}
QUICK = {("background", "bubblewrap"), ("formatter", "landlock"), ("server", "bubblewrap")}
ROWS: list[tuple[str, Mechanism]] = [
    (way, mechanism) for way in WAYS for mechanism in ("bubblewrap", "landlock")
]


def row(way: str, mechanism: Mechanism, user: str, *, slow: bool) -> Attack:
    name = f"{way}_under_{mechanism}{user.replace(' ', '_')}"
    tried = f"A script, run as {way}{user}: {TRIED}"
    return Attack(
        name,
        tried,
        "Nothing of it; what was planted is taken back",
        FELL.get(way, ""),
        slow,
        (way, mechanism),
    )


@attacks(*(row(way, mechanism, "", slow=(way, mechanism) not in QUICK) for way, mechanism in ROWS))
async def test_a_way(row: Attack) -> None:
    way, mechanism = row.value
    needed(mechanism)
    with folder_at_home() as folder:
        assert await got_out(folder, mechanism, way) == []


@contextmanager
def folder_of_nobody() -> Iterator[Path]:
    if os.geteuid() != 0 or not shutil.which("setpriv") or not Path("/home").is_dir():
        pytest.skip("only root becomes another user")
    with tempfile.TemporaryDirectory(prefix="agent-tui-test-", dir="/home") as name:
        os.chown(name, NOBODY, NOBODY)
        yield Path(name)


def as_nobody(folder: Path, module: str, *words: str) -> Any:
    """What a module of the tests prints as JSON when it is run by another user; skips where that user has no Python."""
    # With one program in between no capability is left.
    become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "env"]
    environment = {
        "PATH": ":".join(["/usr/bin", "/bin", str(Path(shutil.which("bwrap") or "/bin/bwrap").parent)]),
        "HOME": str(folder),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *(path for path in sys.path if "packages" in path)]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }

    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*become, *argv],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            cwd=folder,
        )

    pythons = (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}")
    ours = next(
        (one for one in pythons if run(one, "-c", "import pydantic_core, tui_agent").returncode == 0), ""
    )
    if not ours:
        pytest.skip("another user may not read this Python")
    done = run(ours, "-m", module, *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.process
@attacks(
    *(
        row(way, mechanism, " as another user", slow=(way, mechanism) != ("plain", "landlock"))
        for way, mechanism in ROWS
    )
)
def test_a_way_of_another_user(row: Attack) -> None:
    way, mechanism = row.value
    needed(mechanism)
    with folder_of_nobody() as folder:
        assert as_nobody(folder, "tests.sandbox.ways", str(folder / "desk"), mechanism, way) == []


@attacks(
    *(
        Attack(
            f"hooks_under_{mechanism}",
            "A command rewrites, replaces or makes the script that a hook of the operator runs afterwards, outside",
            "What the hook runs is the operator's: the script is as it was, and the one that was not there is none",
            "the rewritten script ran outside the sandbox",
            slow=mechanism == "bubblewrap",
            value=mechanism,
        )
        for mechanism in ("bubblewrap", "landlock")
    )
)
async def test_what_hooks_run(row: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
    needed(row.value)
    monkeypatch.setattr(choose, "candidates", lambda: (row.value,))
    with folder_at_home() as folder:
        (folder / "workspace" / "tools").mkdir(parents=True)
        check = folder / "workspace" / "tools" / "check.sh"
        check.write_text("touch checked\n")
        attack = f"""
            evil='touch {folder}/marker'
            echo "$evil" >> tools/check.sh; sed -i 's/$/; echo x/' tools/check.sh
            echo "$evil" > evil; mv evil tools/check.sh; mv tools old; mkdir tools; echo "$evil" > tools/check.sh
            echo "$evil" > later.sh; mkdir -p bin; printf '#!/bin/sh\\n%s\\n' "$evil" > bin/x; chmod +x bin/x; true
        """
        hooks = [
            {"command": one} for one in ("sh tools/check.sh", "(cd . && sh -e later.sh) &", "./bin/x; true")
        ]
        live = await start_session(
            folder,
            turns(call("bash", command=attack)),
            hooks={"PostToolUse": [{"hooks": hooks}]},
            sandbox="auto",
        )
        await live.run()
        await live.close()
        assert check.read_text() == "touch checked\n"
        assert (folder / "workspace" / "checked").exists()
        assert not (folder / "marker").exists()
