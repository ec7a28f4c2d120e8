"""From the first paint to an open session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.console.terminal import ROOT

pytestmark = pytest.mark.process

OPENS = """
import asyncio, sys
from tests.runtime.scripted import ScriptedOperator
from tui_agent.frontend.arguments import ConsoleArguments
from tui_agent.frontend.startup import open_live
class Host:
    async def start(self):
        print("session imported:", "tui_agent.session.opening" in sys.modules)
    async def close(self):
        pass
async def main(workspace):
    chosen = {"workspace": workspace, "state_dir": workspace + "/state", "model": "openai/x"}
    opened = await open_live(ConsoleArguments(chosen), ScriptedOperator(), None, lambda _: Host())
    await opened.session.close()
asyncio.run(main(sys.argv[1]))
"""


def test_the_model_host_starts_once_and_before_what_a_session_takes_is_imported(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OPENS, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "session imported: False\n", done.stderr


TRIES = """
import os, sys
from tui_agent.session import sandboxes
def tried_out(settings):
    print("imported:", sys.argv[1] in sys.modules, flush=True)
    os._exit(0)
sandboxes.tried_out = tried_out
import asyncio
from tui_agent.cli import main
from tui_agent.frontend.arguments import ConsoleArguments
from tui_agent.frontend.startup import open_live
if sys.argv[2:] == ["run"]:
    main(["run", "hello", "--model", "openai/x"])
asyncio.run(open_live(ConsoleArguments({"model": "openai/x"}), None))
"""


@pytest.mark.parametrize("words", [["tui_agent.headless", "run"], ["tui_agent.session.opening"]])
def test_the_sandbox_is_tried_out_while_the_rest_is_imported(tmp_path: Path, words: list[str]) -> None:
    own = {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "AGENT_TUI_HOST_MINUTES": "0"}
    done = subprocess.run(
        [sys.executable, "-c", TRIES, *words],
        env={**os.environ, **own},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "imported: False\n", done.stderr
