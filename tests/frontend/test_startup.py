"""From the first paint to an open session."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.console.terminal import ROOT

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
