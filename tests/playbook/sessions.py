"""Sessions that teach: the project's own program is found after the usual one was not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.runtime.session_harness import LiveSession, start_session


def bash(command: str) -> dict[str, Any]:
    return {"calls": [{"tool": "bash", "args": {"command": command}}]}


WORK = [bash("checkall src"), bash("ls bin"), bash("bin/check src"), "Checked."]


def with_script(folder: Path) -> Path:
    """The workspace below `folder`, with a program of its own."""
    script = folder / "workspace" / "bin" / "check"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text("#!/bin/sh\necho all is well\n")
    script.chmod(0o755)
    return folder / "workspace"


async def taught(folder: Path, times: int) -> list[LiveSession]:
    """So many sessions in one workspace, each ended."""
    with_script(folder)
    sessions = []
    for _ in range(times):
        live = await start_session(folder, WORK, sandbox="off")
        await live.run()
        await live.close()
        sessions.append(live)
    return sessions
