"""One script that tries to get out, run in each way in which something runs within the sandbox: for `test_ways`.

`python -m tests.sandbox.ways FOLDER MECHANISM WAY` does it as whoever calls it, and prints as JSON what got out.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.mcp.harness import call, eventually, one_tool_server, session_with, standing, turns
from tests.runtime.session_harness import LiveSession, start_session
from tui_agent.config.sections import FileCommand, SandboxSettings
from tui_agent.core import events
from tui_agent.sandbox import choose
from tui_agent.sandbox.mechanisms import Mechanism
from tui_agent.tools.mcp.status import ServerStatus

OBEYED = (
    ".envrc",
    ".mcp.json",
    ".vscode/tasks.json",
    ".claude/settings.json",
    "sub/.nvim.lua",
    ".git/commondir",
)
SCRIPT = r"""
for f in OBEYED; do mkdir -p $(dirname $f); echo planted >> $f; done
printf '[core]\n\tfsmonitor = touch OUT/marker;\n' >> .git/config
printf '#!/bin/sh\ntouch OUT/marker\n' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout
git init -q new; git -C new config core.fsmonitor 'touch OUT/marker;'
cat ~/.netrc ~/.ssh/id OUT/home/.netrc OUT/home/plain.txt; grep -rs THE- OUT /proc/*/environ
for f in OUT/written ~/.bashrc OUT/home/.bashrc ../written; do echo x > $f; done
kill -9 PID
for t in /dev/pts/[0-9]*; do timeout 1 head -c 8 $t; done
python3 -I -S -c 'import socket; socket.socket(socket.AF_UNIX).connect("OUT/home/x.sock"); print("REACH" "ED")'
echo DONE
"""
SERVER = one_tool_server(
    "run",
    """
import subprocess
def said():
    done = subprocess.run(["bash", "attack.sh"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.stdout + done.stderr
""",
)


async def _plain(folder: Path) -> LiveSession:
    return await _done(
        await start_session(folder, turns(call("bash", command="bash attack.sh")), sandbox="auto")
    )


async def _background(folder: Path) -> LiveSession:
    started, waits = (
        call("bash", command="bash attack.sh", background=True),
        call("bash_output", id="b1", wait=60),
    )
    live = await start_session(folder, turns(started, waits), sandbox="auto")
    await live.run()
    await live.until(lambda _: live.of(events.BackgroundEnded))
    (ended,) = live.of(events.BackgroundStarted)
    sys.stderr.write(Path(ended.output_file).read_text())
    await live.close()
    return live


async def _formatter(folder: Path) -> LiveSession:
    shell = FileCommand(shell="bash attack.sh; exit 3")
    script = turns(call("write_file", path="a.txt", content="a"))
    return await _done(await start_session(folder, script, format={"*.txt": shell}, sandbox="auto"))


async def _server(folder: Path) -> LiveSession:
    (folder / "workspace" / "server.py").write_text(SERVER)
    entry = {"command": "/usr/bin/env", "args": ["python3", "-I", "server.py"]}
    walled = SandboxSettings(servers="workspace")
    async with session_with(folder, {"p": entry}, turns(call("p__run")), sandbox=walled) as live:
        await eventually(lambda: standing(live, "p").status is ServerStatus.READY)
        await live.run()
    return live


async def _done(live: LiveSession) -> LiveSession:
    await live.run()
    await live.close()
    return live


WAYS: dict[str, Callable[[Path], Awaitable[LiveSession]]] = {
    "plain": _plain,
    "background": _background,
    "formatter": _formatter,
    "server": _server,
}


@contextmanager
def _desk(folder: Path) -> Any:
    """A home with secrets, a repository, a process and a service outside."""
    home, workspace = folder / "home", folder / "workspace"
    (home / ".ssh").mkdir(parents=True)
    workspace.mkdir()
    for name in (".netrc", ".ssh/id", "plain.txt"):
        (home / name).write_text("THE-SECRET\n")
    git = "git init -q && git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m a"
    subprocess.run(git, shell=True, cwd=workspace, check=True)
    outside = subprocess.Popen(["sleep", "600"], env={"PATH": os.environ["PATH"], "SECRET": "THE-ENV"})
    controller, terminal = os.openpty()
    os.write(controller, b"THE-TYPED\n")
    with socket.socket(socket.AF_UNIX) as service, patch.dict(os.environ, {"HOME": str(home)}):
        service.bind(str(home / "x.sock"))
        service.listen()
        try:
            yield workspace, outside
        finally:
            outside.kill()
            outside.wait()
            os.close(controller)
            os.close(terminal)


async def got_out(folder: Path, mechanism: Mechanism, way: str) -> list[str]:
    """What a script reached or left outside when it was run so; `folder` is a new one, in no temporary folder."""
    with _desk(folder) as (workspace, outside):
        script = SCRIPT.replace("OUT", str(folder)).replace("PID", str(outside.pid))
        (workspace / "attack.sh").write_text(script.replace("OBEYED", " ".join(OBEYED)))
        with patch.object(choose, "candidates", lambda: (mechanism,)):
            live = await WAYS[way](folder)
        # Every word of every event, and what commands wrote into files of the session.
        said = "".join(event.model_dump_json() for event in live.events)
        kept = live.session.folder.rglob("*.txt")
        said += "".join(file.read_text() for file in kept)
        found = [word for word in ("THE-SECRET", "THE-ENV", "THE-TYP", "REACHED") if word in said]
        found += [] if "DONE" in said else ["the script did not run"]
        found += [] if live.state.run.sandbox.startswith(mechanism) or way == "server" else ["no sandbox"]
        found += [name for name in OBEYED if "planted" in _text(workspace / name)]
        found += [] if outside.poll() is None else ["a process outside was ended"]
        found += [str(path) for path in (folder / "written", folder / "home" / ".bashrc") if path.exists()]
        for place in (workspace, workspace / "new"):
            for git in (("status",), ("checkout", "-q", "-b", "x")):
                subprocess.run(["git", *git], cwd=place, capture_output=True, check=False)
        found += ["planted code ran"] if (folder / "marker").exists() else []
        warned = [event.text for event in live.of(events.Notice) if event.origin == "sandbox"]
        return found if any(".envrc" in text for text in warned) else [*found, "nothing was said"]


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


if __name__ == "__main__":
    place, chosen, how = sys.argv[1:]
    print(json.dumps(asyncio.run(got_out(Path(place), chosen, how))))
