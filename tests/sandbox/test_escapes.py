"""Attempts to get out of the sandbox, under every mechanism that works here."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.sandbox.boxes import MECHANISMS, folder_at_home, needed, supervised
from tui_agent.sandbox.mechanisms import Mechanism, Sandbox
from tui_agent.sandbox.policy import SandboxPolicy

TOKENS = (
    *(".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".config/gh/hosts.yml"),
    *(
        ".docker/config.json",
        ".npmrc",
        ".cargo/credentials.toml",
        ".cache/huggingface/token",
        ".pip/pip.conf",
    ),
    *(
        ".config/agent-tui/mcp.json",
        ".config/agent-tui/config.toml",
        "Documents/passwords.txt",
        ".unheard-of/token",
    ),
)
"""In the home folder."""


@dataclass
class Box:
    """A sandbox around `workspace`; `home` holds secrets and lies outside."""

    sandbox: Sandbox
    workspace: Path
    home: Path

    def run(self, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            **self.sandbox.environment(),
            **variables,
        }
        return supervised(
            self.sandbox, [shutil.which("bash") or "sh", "-c", script], cwd=self.workspace, env=environment
        )

    def python(self, code: str) -> subprocess.CompletedProcess[str]:
        (self.workspace / "attack.py").write_text(code)
        # The interpreter behind a virtual environment, which may lie in the temporary folder.
        return self.run(f"'{Path(sys.executable).resolve()}' -I -S attack.py")


@pytest.fixture(params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    needed(request.param)
    chosen: Mechanism = request.param
    return chosen


@pytest.fixture
def place() -> Iterator[Path]:
    with folder_at_home() as folder:
        yield folder


@pytest.fixture
def box(mechanism: Mechanism, place: Path, monkeypatch: pytest.MonkeyPatch) -> Box:
    home, workspace = place / "home", place / "workspace"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_ed25519").write_text("THE-KEY")
    (home / ".netrc").write_text("THE-PASSWORD")
    (home / "plain.txt").write_text("plain")
    (home / ".gitconfig").write_text("[user]\n\tname = Somebody\n")
    for token in TOKENS:
        (home / token).parent.mkdir(parents=True, exist_ok=True)
        (home / token).write_text("THE-TOKEN")
    (home / ".config" / "agent-tui" / "skills").mkdir()
    (home / ".config" / "agent-tui" / "skills" / "a.py").write_text("print('a skill')")
    (workspace / ".git" / "hooks").mkdir(parents=True)
    (workspace / ".git" / "config").write_text("[core]\n")
    state = home / "state"
    (state / "s1" / "tmp").mkdir(parents=True)
    (state / "conversation").write_text("THE-TALK")
    monkeypatch.setenv("HOME", str(home))
    policy = SandboxPolicy.around(
        workspace,
        state / "s1" / "tmp",
        state_dir=state,
        config_dir=home / ".config" / "agent-tui",
        hide=("~/extra",),
    )
    return Box(Sandbox(mechanism, policy), workspace, home)


def test_ordinary_work_is_done_inside(box: Box) -> None:
    ended = box.run(
        "echo a > new.txt && mkdir d && mv new.txt d && cat d/new.txt && git config --global user.name && mktemp"
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("a\nSomebody")
    assert (box.workspace / "d" / "new.txt").read_text() == "a\n"
    assert box.run("exit 7").returncode == 7


def test_the_temporary_folder_lasts_from_one_command_to_the_next(box: Box) -> None:
    box.run('echo kept > "$TMPDIR/x"')
    assert box.run('cat "$TMPDIR/x"').stdout == "kept\n"


WRITES = [
    "echo x > {home}/new",
    "echo x >> {home}/plain.txt",
    "rm {home}/plain.txt",
    "mv {home}/plain.txt .",
    "chmod 777 {home}/plain.txt && echo x > {home}/plain.txt",
    "ln -s {home}/plain.txt link && echo x > link",
    "ln {home}/plain.txt hard && echo x > hard",
    "mkdir {home}/folder",
    "truncate -s 0 {home}/plain.txt",
    "echo x > ../outside",
    "cd / && echo x > {home}/new",
    "mount -o remount,rw / ; umount {home}; echo x > {home}/new",
    "unshare -Urm sh -c 'mount -o remount,rw /; echo x > {home}/new'",
    "echo x > /proc/1/root{home}/new; echo x > /proc/$PPID/root{home}/new; echo x > /proc/$PPID/cwd/../home/new",
]


@pytest.mark.parametrize("script", WRITES)
def test_nothing_outside_is_written(box: Box, script: str) -> None:
    before = sorted(path.name for path in box.home.iterdir())
    box.run(script.replace("{home}", str(box.home)))
    assert sorted(path.name for path in box.home.iterdir()) == before
    assert (box.home / "plain.txt").read_text() == "plain"
    assert not (box.workspace.parent / "outside").exists()


READS = [
    "cat ~/.ssh/id_ed25519",
    "cp ~/.ssh/id_ed25519 k; cat k",
    "ln -s ~/.ssh s; cat s/id_ed25519",
    "ln ~/.ssh/id_ed25519 k; cat k",
    "cat ~/.netrc",
    "cat ~/state/conversation",
    "umount ~/.ssh; umount ~/.netrc; cat ~/.ssh/id_ed25519 ~/.netrc",
    "unshare -Urm sh -c 'umount ~/.ssh; cat ~/.ssh/id_ed25519'",
    "mv ~/.ssh ~/x; cat ~/x/id_ed25519",
    "for p in /proc/[0-9]*; do cat $p/root$HOME/.ssh/id_ed25519 $p/cwd/../home/.netrc; done",
    "tar c ~ | tar xO",
    "grep -r THE- ~",
]


@pytest.mark.parametrize("script", READS)
def test_secrets_of_the_user_are_not_read(box: Box, script: str) -> None:
    assert "THE-" not in box.run(script).stdout


@pytest.mark.parametrize("token", TOKENS)
def test_nothing_in_the_home_folder_is_read_but_tools(box: Box, token: str) -> None:
    assert "THE-" not in box.run(f"cat ~/{token} {box.home}/{token}").stdout


def test_skills_beside_the_configuration_are_read(box: Box) -> None:
    assert box.run(f"cat {box.home}/.config/agent-tui/skills/a.py").stdout == "print('a skill')"


def test_what_a_command_writes_into_its_home_folder_lasts_and_stays_private(box: Box) -> None:
    assert box.run("mkdir -p ~/.cache/x && echo kept > ~/.cache/x/y").stderr == ""
    assert box.run("cat ~/.cache/x/y").stdout == "kept\n"
    assert not (box.home / ".cache" / "x").exists()


def test_what_is_named_in_the_configuration_is_shown(box: Box) -> None:
    assert box.sandbox.policy is not None
    policy = SandboxPolicy.around(box.workspace, box.sandbox.policy.scratch, show=("~/Documents",))
    shown = Box(Sandbox(box.sandbox.mechanism, policy), box.workspace, box.home)
    ended = shown.run("cat ~/Documents/passwords.txt ~/.netrc; echo x > ~/Documents/passwords.txt")
    assert ended.stdout == "THE-TOKEN"
    assert (box.home / "Documents" / "passwords.txt").read_text() == "THE-TOKEN"


def test_terminals_of_others_are_neither_read_nor_written(box: Box) -> None:
    controller, terminal = os.openpty()
    try:
        os.write(controller, b"THE-PASSWORD\n")
        name = os.ttyname(terminal)
        ended = box.run(f"timeout 2 head -c 12 {name}; echo typed > {name}; timeout 2 head -c 12 /dev/tty")
        assert "THE-" not in ended.stdout
        os.set_blocking(terminal, False)
        assert os.read(terminal, 100) == b"THE-PASSWORD\n"
    finally:
        os.close(controller)
        os.close(terminal)


def test_a_folder_that_may_be_written_gives_no_secret_in_it_away(box: Box) -> None:
    assert box.sandbox.policy is not None
    policy = SandboxPolicy.around(box.workspace, box.sandbox.policy.scratch, writable=("~", "~/.netrc"))
    wide = Box(Sandbox(box.sandbox.mechanism, policy), box.workspace, box.home)
    ended = wide.run(
        "echo x > ~/plain.txt; cat ~/.ssh/id_ed25519; mv ~/.ssh ~/x; cat ~/x/id_ed25519; cat ~/.netrc"
    )
    assert ended.stdout == "THE-PASSWORD", ended.stderr
    assert (box.home / "plain.txt").read_text() == "x\n"


def test_what_others_run_later_is_not_written_where_the_mechanism_can_tell(box: Box) -> None:
    attributes = box.workspace / ".git" / "info" / "attributes"
    attributes.parent.mkdir()
    attributes.write_text("* text\n")
    script = "echo x > .git/hooks/post-checkout; echo x >> .git/config; mv .git g; mv .git/config c; echo ok > .git/ok"
    box.run(f"{script}; mv .git/info .git/i; mkdir .git/info; echo x > .git/info/attributes")
    if box.sandbox.mechanism == "landlock":
        pytest.skip("Landlock cannot take a folder back from one that may be written")
    assert list((box.workspace / ".git" / "hooks").iterdir()) == []
    assert (box.workspace / ".git" / "config").read_text() == "[core]\n"
    assert attributes.read_text() == "* text\n"


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_no_network_is_reached(box: Box, listening: int) -> None:
    ended = box.python(
        "import socket\n"
        f"places = (socket.SOCK_STREAM, ('127.0.0.1', {listening})), (socket.SOCK_DGRAM, ('192.0.2.1', 53))\n"
        "for kind, address in places:\n"
        "    try:\n"
        "        s = socket.socket(socket.AF_INET, kind)\n"
        "        s.settimeout(5)\n"
        "        s.connect(address)\n"
        "        s.send(b'x')\n"
        "        print('REACHED', address)\n"
        "    except OSError as error:\n"
        "        print(error)\n"
    )
    assert "REACHED" not in ended.stdout
    assert ended.stdout.count("\n") == 2


def test_the_network_is_there_where_it_is_allowed(box: Box, listening: int) -> None:
    assert box.sandbox.policy is not None
    policy = SandboxPolicy.around(
        box.workspace, box.sandbox.policy.scratch, network=True, loopback=(listening,)
    )
    open_box = Box(Sandbox(box.sandbox.mechanism, policy), box.workspace, box.home)
    ended = open_box.python(
        f"import socket\nsocket.create_connection(('127.0.0.1', {listening}), 5)\nprint('there')"
    )
    assert ended.stdout == "there\n", ended.stderr


def test_services_behind_unix_sockets_are_not_reached(box: Box) -> None:
    """As a container engine's or an agent's for keys, which act for whoever connects."""
    with socket.socket(socket.AF_UNIX) as service, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0agent-tui-{os.getpid()}")
        abstract.listen()
        path = Path("/run/agent-tui-test.sock") if os.access("/run", os.W_OK) else None
        if path is not None:
            path.unlink(missing_ok=True)
            service.bind(str(path))
            service.listen()
        try:
            ended = box.python(
                "import socket\n"
                f"for name in ({str(path)!r}, '\\0agent-tui-{os.getpid()}'):\n"
                "    try:\n"
                "        socket.socket(socket.AF_UNIX).connect(name)\n"
                "        print('REACHED', name)\n"
                "    except OSError as error:\n"
                "        print(error)\n"
            )
        finally:
            if path is not None:
                path.unlink()
    assert "REACHED" not in ended.stdout
    assert ended.stdout.count("\n") == 2


PLACES = (
    "home/tmux.sock",
    "workspace/server.sock",
    "workspace/deep/server.sock",
    "home/.cargo/agent.sock",
    "x/y.sock",
)


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("network", [False, True])
def test_a_service_is_not_reached_wherever_its_socket_is(box: Box, where: str, network: bool) -> None:
    """As a multiplexer of terminals, which types what it is told to."""
    assert box.sandbox.policy is not None
    path = box.home.parent / where
    path.parent.mkdir(parents=True, exist_ok=True)
    policy = SandboxPolicy.around(box.workspace, box.sandbox.policy.scratch, network=network)
    inside = Box(Sandbox(box.sandbox.mechanism, policy), box.workspace, box.home)
    with socket.socket(socket.AF_UNIX) as service:
        service.bind(str(path))
        service.listen()
        ended = inside.python(
            "import os, socket\n"
            f"for name in ({str(path)!r}, os.path.relpath({str(path)!r})):\n"
            "    try:\n"
            "        socket.socket(socket.AF_UNIX).connect(name)\n"
            "        print('REACHED', name)\n"
            "    except OSError as error:\n"
            "        print(error)\n"
        )
    assert ended.stdout.count("\n") == 2, ended.stderr
    assert "REACHED" not in ended.stdout


def test_sockets_of_their_own_are_used_by_commands(box: Box) -> None:
    ended = box.python(
        "import socket\n"
        "a, b = socket.socketpair()\n"
        "a.send(b'x'); print(b.recv(1))\n"
        "s = socket.socket(socket.AF_UNIX); s.bind('own.sock'); s.listen()\n"
        "c = socket.socket(socket.AF_UNIX); c.connect('own.sock'); print('own')\n"
    )
    assert ended.stdout == "b'x'\nown\n"


@pytest.fixture
def outsider() -> Iterator[subprocess.Popen[bytes]]:
    """A process outside, with a secret in its environment."""
    process = subprocess.Popen(["sleep", "600"], env={"PATH": os.environ["PATH"], "SECRET": "THE-ENV"})
    yield process
    process.kill()
    process.wait()


def test_the_environment_of_processes_outside_is_not_read(
    box: Box, outsider: subprocess.Popen[bytes]
) -> None:
    script = "for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; done; cat /proc/$PPID/environ"
    ended = box.run(f"{script}; cat /proc/{outsider.pid}/environ")
    assert "THE-ENV" not in ended.stdout
    assert "PYTEST_CURRENT_TEST" not in ended.stdout


def test_processes_outside_are_not_signalled(box: Box, outsider: subprocess.Popen[bytes]) -> None:
    box.run(f"kill -9 {outsider.pid}; kill -TERM {outsider.pid}")
    assert outsider.poll() is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ptrace by number")
def test_processes_outside_are_not_traced(box: Box, outsider: subprocess.Popen[bytes]) -> None:
    ended = box.python(
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        f"for pid in ({outsider.pid}, {os.getpid()}):\n"
        "    print(libc.ptrace(16, pid, 0, 0))\n"
        "    buffer = ctypes.create_string_buffer(8)\n"
        "    try:\n"
        "        os.open(f'/proc/{pid}/mem', os.O_RDWR); print('OPENED')\n"
        "    except OSError: pass\n"
    )
    assert ended.stdout == "-1\n-1\n"


def test_privileges_are_not_gained(box: Box) -> None:
    status = box.run("cat /proc/self/status").stdout
    if not status:
        pytest.skip("no /proc here")
    assert "NoNewPrivs:\t1" in status
    effective = int(status.partition("CapEff:")[2].split()[0], 16)
    # At most what root needs for the files of others.
    assert effective & ~0b11011 == 0


def test_nothing_is_left_behind(box: Box) -> None:
    if box.sandbox.mechanism != "bubblewrap":
        pytest.skip("processes are ended by what started the command, not by the sandbox")
    box.run("(sleep 0.3; echo late > late.txt) & setsid sh -c 'sleep 0.3; echo late > later.txt' &")
    time.sleep(0.6)
    assert not list(box.workspace.glob("late*"))


def test_a_command_that_fails_at_a_wall_says_so(box: Box) -> None:
    ended = box.run(f"echo x > {box.home.parent}/new")
    assert "ran in a sandbox" in box.sandbox.hint(ended.stderr)
    assert box.sandbox.hint("2 failed, 3 passed") == ""
    assert Sandbox().hint(ended.stderr) == ""


def test_a_tool_in_a_folder_that_may_not_be_entered_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = tmp_path / "locked"
    (locked / "bin").mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{locked / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("PYENV_ROOT", str(locked / "pyenv"))
    locked.chmod(0)
    try:
        policy = SandboxPolicy.around(tmp_path, tmp_path / "s", writable=(str(locked / "x"),))
        assert locked / "x" not in policy.writable
    finally:
        locked.chmod(0o700)
