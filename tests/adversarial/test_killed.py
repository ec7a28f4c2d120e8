"""Attacks that outlive this program: what a command planted when it was killed in the middle is taken back at the next
start in the workspace.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adversarial.attack import Attack, attack, attacks
from tests.mcp.harness import eventually
from tests.runtime.session_harness import start_session
from tests.sandbox.boxes import folder_at_home, needed
from tui_agent.core import events
from tui_agent.sandbox import choose
from tui_agent.sandbox.left_behind import GRACE, WorkspaceRecord
from tui_agent.sandbox.run_later import Places
from tui_agent.sandbox.watch import Watch
from tui_agent.store.audit import effects_of, in_words

ROOT = Path(__file__).resolve().parents[2]
RUN = """
import asyncio, sys
from pathlib import Path
from tests.runtime.session_harness import start_session
from tui_agent.sandbox import choose
choose.candidates = lambda: (sys.argv[2],)
async def main():
    command = {"tool": "bash", "args": {"command": "bash attack.sh"}}
    live = await start_session(Path(sys.argv[1]), [{"calls": [command]}, {"text": "done"}], sandbox="auto")
    await live.run()
asyncio.run(main())
"""
ATTACK = r"""
touch started; until [ -e go ]; do sleep 0.02; done
mkdir deep; echo planted > deep/.envrc; echo planted >> .envrc
git init -q new; git -C new config core.fsmonitor 'touch marker;'
printf '[core]\n\tfsmonitor = touch marker;\n' >> .git/config
touch planted; sleep 600
"""


@pytest.mark.process
@attacks(
    *(
        Attack(
            f"killed_under_{mechanism}",
            "SIGKILL of this program while a command runs that has just planted: settings of git, `.envrc`",
            "The next start in the workspace compares with what was written down before, takes it back, and says so",
            "it stayed, and the next start took it for the operator's",
            slow=mechanism != "landlock",
            value=mechanism,
        )
        for mechanism in ("bubblewrap", "landlock")
    )
)
async def test_this_program_is_killed(row: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
    needed(row.value)
    with folder_at_home() as folder:
        workspace = folder / "workspace"
        workspace.mkdir()
        subprocess.run(["git", "init", "-q"], cwd=workspace, check=True)
        (workspace / ".envrc").write_text("mine\n")
        (workspace / "attack.sh").write_text(ATTACK)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
        }
        killed = subprocess.Popen([sys.executable, "-c", RUN, str(folder), row.value], env=environment)
        try:
            await eventually((workspace / "started").exists)
            killed.send_signal(signal.SIGSTOP)  # so that it does not look in between
            (workspace / "go").touch()
            await eventually((workspace / "planted").exists)
        finally:
            killed.kill()
            killed.wait()
        assert (workspace / "deep" / ".envrc").exists()
        monkeypatch.setattr(choose, "candidates", lambda: (row.value,))
        live = await start_session(folder, [], sandbox="auto")
        await live.session.sandbox.ready()
        text = "".join(event.text for event in live.of(events.Notice) if event.origin == "sandbox")
        assert text.startswith("The last run here was killed.")
        assert "deep/.envrc" in text
        assert "new/.git/config" in text
        assert not (workspace / "deep" / ".envrc").exists()
        assert (workspace / ".envrc").read_text() == "mine\n"
        for config in (".git/config", "new/.git/config"):
            assert "fsmonitor" not in (workspace / config).read_text()
        assert "taken back  The last run here was killed." in "".join(in_words(effects_of(live.events)))
        await live.close()
        # It is said once, and nothing is kept that the next start would go by.
        assert not list((folder / "state" / "sandbox").rglob("*.*"))


def watch(folder: Path) -> Watch:
    (folder / "w").mkdir(exist_ok=True)
    return Watch(Places.of(folder / "w", (), folder), folder / "kept", WorkspaceRecord(folder / "records"))


def left_by_a_kill(folder: Path, *, running: bool) -> None:
    """A program that begins a command, and ends it or not, and is gone."""
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom tests.adversarial.test_killed import watch\n"
        "one = watch(Path(sys.argv[1])); one.look(); token, _ = one.begin()\n"
        + ("" if running else "one.end(token)\n")
        + "os.kill(os.getpid(), 9)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    subprocess.run([sys.executable, "-c", code, str(folder)], env=environment, check=False)


@pytest.mark.process
@attack(
    "What is changed after a kill: by the operator a while later, or when no command ran",
    "Left alone",
)
def test_what_the_operator_changes_after_a_kill(tmp_path: Path) -> None:
    for running in (True, False):
        left_by_a_kill(tmp_path, running=running)
        if running:
            (record,) = (tmp_path / "records").glob("*.json")
            long_ago = record.stat().st_mtime - GRACE - 1
            os.utime(record, (long_ago, long_ago))
        (tmp_path / "w" / ".envrc").write_text("the operator's")
        assert watch(tmp_path).recover() == []
        assert (tmp_path / "w" / ".envrc").exists()
        (tmp_path / "w" / ".envrc").unlink()


@pytest.mark.process
@attack(
    "A start while another program works in the workspace; a damaged record; a file that is too large to be put back",
    "What is of a living program is left to it; damage is passed over; a file is never replaced by less than it was",
    fell="a file of over 1 MB was replaced by its size",
)
def test_records_of_others(tmp_path: Path) -> None:
    living = watch(tmp_path)
    large = tmp_path / "w" / ".envrc"
    large.write_bytes(b"x" * 1_500_000)
    living.look()
    token, _ = living.begin()
    with large.open("ab") as file:
        file.write(b"planted")
    assert watch(tmp_path).recover() == []
    (taken,) = living.end(token)
    assert "could not be undone" in str(taken)
    assert large.stat().st_size == 1_500_007
    large.unlink()
    left_by_a_kill(tmp_path, running=True)
    (record,) = (tmp_path / "records").glob("*.json")
    record.write_text('[["00"')
    assert watch(tmp_path).recover() == []
    assert not record.exists()
