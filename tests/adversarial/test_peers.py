"""Attacks on the socket at which other agents' hooks are answered: by other users, by whoever is there first, by
callers that are slow, many or lying; and what stays in its process.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.adversarial.attack import Attack, attack, attacks
from tests.adversarial.ending import ends
from tui_agent.agents import daemon, door, hook_client
from tui_agent.agents.daemon import Daemon, serve

OTHER_USER = 12345
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
KEY = "sk-live-4f9d0c7be1a24c53"


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A runtime folder of this user, with a home and a state folder beside it. Daemons that begin here end with it."""
    folder = Path(tempfile.mkdtemp(prefix="peers"))
    for name in ("home", "state", "run"):
        (folder / name).mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder / "run"))
    monkeypatch.setenv("HOME", str(folder / "home"))
    monkeypatch.setenv("AGENT_TUI_STATE_DIR", str(folder / "state"))
    monkeypatch.chdir(folder / "home")
    yield folder
    for lock in folder.rglob("hooks-*.lock"):
        with suppress(OSError, ValueError):
            os.kill(int(lock.read_text()), signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


def folder_of(place: tuple[int, str]) -> Path:
    descriptor, _ = place
    try:
        return Path(f"/proc/self/fd/{descriptor}").readlink()
    finally:
        os.close(descriptor)


# --- the folder -------------------------------------------------------------------------------------------------------


def spoil(run: Path, how: str) -> None:
    ours = run / "agent-tui"
    match how:
        case "open_to_all":
            ours.mkdir()
            ours.chmod(0o777)
        case "open_to_the_group":
            ours.mkdir()
            ours.chmod(0o770)
        case "parent_open_to_all":
            run.chmod(0o777)
        case "link":
            (run.parent / "elsewhere").mkdir(mode=0o700)
            ours.symlink_to("../elsewhere")
        case "file":
            ours.write_text("")
        case "pipe":
            os.mkfifo(ours)
        case "of_another_user":
            ours.mkdir(mode=0o700)
            os.chown(ours, OTHER_USER, OTHER_USER)
        case "parent_of_another_user":
            os.chown(run, OTHER_USER, OTHER_USER)
        case "grandparent_open_to_all":
            ours.mkdir(mode=0o700)
            run.parent.chmod(0o777)


SPOILT = {
    "open_to_all": ("Everybody may write into the folder of the socket", ""),
    "open_to_the_group": ("The group may write into it", ""),
    "parent_open_to_all": (
        "Everybody may write into the folder above: they can rename ours and make another",
        "the folder above was never looked at",
    ),
    "link": ("It is a link to another folder", ""),
    "file": ("It is a file", ""),
    "pipe": ("It is a named pipe", ""),
    "of_another_user": ("It is another user's", ""),
    "parent_of_another_user": (
        "The runtime folder is another user's, as after `su` and `sudo -E`",
        "that user swapped the folder between the look and the connection, and read what was said",
    ),
}


@attacks(
    *(
        Attack(
            f"runtime_folder_{name}",
            what,
            "It is not used: a private one at home is",
            fell,
            value=name,
        )
        for name, (what, fell) in SPOILT.items()
    )
)
def test_runtime_folders(row: Attack, runtime: Path) -> None:
    if row.name.endswith("user") and os.geteuid() != 0:
        pytest.skip("only root gives files to others")
    spoil(runtime / "run", row.value)
    used = folder_of(hook_client.place())
    assert used == runtime / "home" / ".cache" / "agent-tui-run"
    assert used.stat().st_mode & 0o777 == 0o700


@attack(
    "A folder far above, in which everybody may rename what is there",
    "Nothing below it is used, however private it is itself",
    fell="it was used",
)
def test_folder_far_above_that_is_open(runtime: Path) -> None:
    spoil(runtime / "run", "grandparent_open_to_all")
    used = folder_of(hook_client.place())
    assert used == Path(f"/tmp/agent-tui-{os.geteuid()}")


@attack(
    "The folder is renamed, and one with an impostor's socket put in its place, between the look and the connection",
    "The connection goes to the folder that was looked at; the impostor hears nothing",
    fell="it was asked, with prompts and keys",
)
def test_folder_swapped_before_the_connection(runtime: Path) -> None:
    descriptor, path = hook_client.place()
    ours = runtime / "run" / "agent-tui"
    name = path.rpartition("/")[2]
    with socket.socket(socket.AF_UNIX) as honest, socket.socket(socket.AF_UNIX) as impostor:
        honest.bind(str(ours / name))
        honest.listen()
        ours.rename(ours.with_name("was"))
        ours.mkdir()
        impostor.bind(str(ours / name))
        impostor.listen()
        impostor.setblocking(False)
        hook_client._connected(descriptor, path).close()
        honest.accept()[0].close()
        with pytest.raises(BlockingIOError):
            impostor.accept()
    os.close(descriptor)


def as_another_user(work: Callable[[], None]) -> int:
    """Begin `work` in a process of another user; its number."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(OTHER_USER)
            os.setuid(OTHER_USER)
            work()
        finally:
            os._exit(0)
    return pid


@needs_root
@attack(
    "A process of another user listens at the very socket",
    "It is asked who it is before anything is said, and hears nothing",
    fell="it was told everything",
)
def test_impostor_of_another_user(runtime: Path) -> None:
    descriptor, path = hook_client.place()
    name = path.rpartition("/")[2]
    ours = runtime / "run" / "agent-tui"
    (runtime / "heard").touch()
    (runtime / "heard").chmod(0o666)
    runtime.chmod(0o755)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(ours / name))

    def listen() -> None:
        listener.listen()  # who listens is who the other end sees
        (runtime / "heard").write_text("listens")
        caller, _ = listener.accept()
        (runtime / "heard").write_bytes(caller.recv(100) or b"nothing")

    pid = as_another_user(listen)
    try:
        while not (runtime / "heard").read_text():
            time.sleep(0.01)
        with pytest.raises(PermissionError, match="another user answers"):
            hook_client.ask(b'{"prompt": "secret"}', ["claude-code"])
        os.waitpid(pid, 0)
        assert (runtime / "heard").read_text() == "nothing"
    finally:
        listener.close()
        os.close(descriptor)


@pytest.fixture
def served(runtime: Path) -> Iterator[Path]:
    """The path of a socket at which a daemon serves in a thread."""
    path = runtime / "run" / "hooks"
    daemon_here = Daemon()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(256)
        thread = threading.Thread(target=serve, args=(listener, path, daemon_here), daemon=True)
        thread.start()
        yield path
        with suppress(OSError), caller(path):
            path.unlink(missing_ok=True)
        thread.join(10)
    daemon_here.close()


def caller(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(30)
    made.connect(str(path))
    return made


def request(event: dict[str, Any], runtime: Path, *variables: str) -> bytes:
    words = [
        "claude-code",
        "off",
        "",
        str(runtime / "home"),
        f"AGENT_TUI_STATE_DIR={runtime / 'state'}",
        *variables,
    ]
    head, said = b"\0".join(os.fsencode(word) for word in words), json.dumps(event).encode()
    return b"0 %d %d\n" % (len(head), len(said)) + head + said


def event(name: str = "UserPromptSubmit", **more: Any) -> dict[str, Any]:
    return {"hook_event_name": name, "session_id": "s1", "cwd": "/", "prompt": "hello", **more}


def answered(path: Path, runtime: Path) -> bytes:
    with caller(path) as one:
        one.sendall(request(event(), runtime))
        return one.recv(100)


@needs_root
@attack(
    "A process of another user connects to the socket",
    "It is closed before it is heard",
    fell="only the folder's mode kept it out",
)
def test_caller_of_another_user(served: Path, runtime: Path) -> None:
    for folder in (runtime, runtime / "run"):
        folder.chmod(0o755)
    served.chmod(0o666)
    (runtime / "said").touch()
    (runtime / "said").chmod(0o666)

    def call() -> None:
        with caller(served) as one, suppress(OSError):
            one.sendall(request(event(), runtime))
            (runtime / "said").write_bytes(one.recv(100) or b"nothing")

    os.waitpid(as_another_user(call), 0)
    assert (runtime / "said").read_text() in ("", "nothing")
    assert not (runtime / "state" / "sessions").exists()
    assert ends(lambda: answered(served, runtime)) == b"\n"


# --- callers ----------------------------------------------------------------------------------------------------------

SLOW = "the next hook waited until ten seconds were over"


LIES = (
    b"0 -1 5\n",
    b"0 5 -1\n",
    b"0 99999999999 1\n",
    b"0 1 99999999999\n",
    b"x y z\n",
    b"0 1\n",
    b"\n",
    b"9" * 99,
)


def bother(how: str, whole: bytes, called: Callable[[bytes], socket.socket]) -> None:
    """Call in a way that might keep others waiting."""
    half = whole[: len(whole) // 2]
    match how:
        case "say_nothing":
            for _ in range(200):
                called(b"")
        case "stop_half_way" | "close_half":
            for one in [called(half) for _ in range(20)]:
                if how == "close_half":
                    one.shutdown(socket.SHUT_WR)
        case "drip":
            called(whole[:3])
        case "do_not_read":
            for _ in range(20):
                called(whole)
        case "lie":
            for lengths in LIES:
                called(lengths + b"x" * 100)
        case _:
            for _ in range(20):
                called(whole).close()


@attacks(
    *(
        Attack(
            f"callers_that_{name}",
            what,
            "The next hook is answered at once",
            fell,
            value=name,
        )
        for name, what, fell in (
            ("say_nothing", "Two hundred callers that connect and say nothing", SLOW),
            ("stop_half_way", "Callers that say half of what they announced, and stay", SLOW),
            (
                "drip",
                "A caller that says a byte now and then, each time in time",
                "it held up all others for good",
            ),
            ("close_half", "Callers that close the end at which they write, half way", ""),
            ("do_not_read", "Callers that never read their answers", ""),
            ("lie", "Lengths that are negative, too large, no numbers, or missing", ""),
            ("leave", "Callers that leave before they are answered", ""),
        )
    )
)
def test_callers(row: Attack, served: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon, "_PATIENCE", 20.0)  # so that nothing of it is patience
    whole = request(event(), runtime)
    held: list[socket.socket] = []

    def called(said: bytes) -> socket.socket:
        held.append(caller(served))
        with suppress(BrokenPipeError, ConnectionResetError):
            held[-1].sendall(said)
        return held[-1]

    try:
        bother(row.value, whole, called)
        if row.value == "drip":
            for place in range(5):
                held[0].sendall(whole[3 + place : 4 + place])
                assert ends(lambda: answered(served, runtime)) == b"\n"
        began = time.monotonic()
        assert ends(lambda: answered(served, runtime)) == b"\n"
        assert time.monotonic() - began < 60
    finally:
        for one in held:
            one.close()


@attack(
    "A caller that stays without a word beyond its time",
    "It is closed, and takes no place any more",
)
def test_caller_that_stays(served: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon, "_PATIENCE", 0.05)
    with caller(served) as one:
        assert ends(lambda: one.recv(1)) == b""


@attack(
    "The lock of the daemon is a named pipe, or a link to a file of the user",
    "Nothing waits, and nothing is cut",
)
def test_lock_that_is_no_file(runtime: Path) -> None:
    descriptor, path = hook_client.place()
    ours, name = runtime / "run" / "agent-tui", path.rpartition("/")[2]
    os.mkfifo(ours / f"{name}.lock")
    with suppress(OSError):
        ends(lambda: hook_client._start(descriptor, path))
    for lock in ours.glob("*.lock"):
        lock.unlink()
    (runtime / "precious").write_text("precious")
    (ours / f"{name}.lock").symlink_to(runtime / "precious")
    with pytest.raises(OSError, match="symbolic link"):
        ends(lambda: hook_client._start(descriptor, path))
    assert (runtime / "precious").read_text() == "precious"
    os.close(descriptor)


# --- what stays -------------------------------------------------------------------------------------------------------


@attack(
    "The process that answers hooks, looked into after an event of somebody with keys in their variables",
    "It has none of them, and the disk has none: a key that an event holds is masked",
    fell="the variables of whoever came first were its own for as long as it lived",
)
def test_keys_do_not_stay(runtime: Path) -> None:
    said = json.dumps(event(prompt=f"use {KEY}")).encode()
    environment = {**os.environ, "MY_API_KEY": KEY, "AGENT_TUI_OTHER_TOKEN": KEY}
    command = [sys.executable, "-I", "-S", door.__file__, "claude-code"]
    subprocess.run(command, input=said, env=environment, check=True, timeout=60, capture_output=True)
    (lock,) = (runtime / "run" / "agent-tui").glob("*.lock")
    pid = int(lock.read_text())
    assert KEY.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
    written = b"".join(path.read_bytes() for path in (runtime / "state").rglob("*") if path.is_file())
    assert b"use " in written
    assert KEY.encode() not in written
    core = Path(f"/proc/{pid}/limits").read_text().partition("Max core file size")[2].split()[0]
    assert core == "0"


@attack(
    "The key of the second hook, which the daemon's first caller did not have",
    "It is masked all the same: each event comes with what its caller has",
    fell="only the keys of the first caller were masked",
)
def test_keys_of_a_later_caller_are_masked(runtime: Path) -> None:
    here = Daemon()
    words = ["claude-code", "off", "", str(runtime / "home"), f"AGENT_TUI_STATE_DIR={runtime / 'state'}"]
    here.answer(words, json.dumps(event(prompt="first")).encode())
    here.answer([*words, f"LATER_TOKEN={KEY}"], json.dumps(event(prompt=f"use {KEY}")).encode())
    assert not [lane for lane in here._lanes.values() if lane._redactor.values]
    here.close()
    written = b"".join(path.read_bytes() for path in (runtime / "state").rglob("*") if path.is_file())
    assert b"first" in written
    assert KEY.encode() not in written


@attack(
    "A conversation that has ended, and one that nobody has gone on with",
    "Neither stays in the process: what goes on is read from its journal",
    fell="64 of them stayed for as long as anybody came",
)
def test_words_do_not_stay(runtime: Path) -> None:
    here = Daemon()
    words = ["claude-code", "off", "", str(runtime / "home"), f"AGENT_TUI_STATE_DIR={runtime / 'state'}"]
    for session in ("s1", "s2"):
        here.answer(words, json.dumps(event(session_id=session)).encode())
    assert len(here._lanes) == 2
    here.answer(words, json.dumps(event("SessionEnd", session_id="s1", reason="other")).encode())
    assert [key[2] for key in here._lanes] == ["s2"]
    here.forget(idle=-1.0)
    assert (here._lanes, here._heard) == ({}, {})
    here.answer(words, json.dumps(event(session_id="s2", prompt="again")).encode())
    here.close()
    (journal,) = [
        path for path in (runtime / "state" / "sessions").glob("*/*.jsonl") if b"again" in path.read_bytes()
    ]
    assert b"hello" in journal.read_bytes()


@attack(
    "Two versions of the program at once, and two copies of one version",
    "Each has its own daemon: none speaks to another's",
    fell="copies whose files have one time, as uv makes them, shared one",
)
def test_two_versions_at_once(runtime: Path) -> None:
    names = {hook_client._name()}
    source = Path(hook_client.__file__)
    for number, more in enumerate(("", "", "\n# another version\n")):
        copy = runtime / f"copy{min(number, 1)}" / "hook_client.py"
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(source.read_text() + more)
        os.utime(copy, ns=(1, 1))
        spec = importlib.util.spec_from_file_location(f"copy{number}", copy)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        names.add(module._name())
    assert len(names) == 4


@attack(
    "A runtime folder whose path is longer than a socket's may be",
    "It is used all the same, by its descriptor",
)
def test_long_runtime_folder(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = runtime / "run" / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    descriptor, path = hook_client.place()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        hook_client._connected(descriptor, path).close()
    os.close(descriptor)
    assert resource.getrlimit(resource.RLIMIT_CORE)  # that of the tests is as it was


@attack(
    "Another version of the program is installed where the daemon's interpreter looks first",
    "The daemon is of the copy whose hook has begun it",
    fell="it was the other version, which did not know how it was begun: each hook cost ten seconds",
)
def test_another_version_is_installed(runtime: Path) -> None:
    other = runtime / "other" / "tui_agent" / "agents"
    other.mkdir(parents=True)
    for folder in (other.parent, other):
        (folder / "__init__.py").touch()
    (other / "daemon.py").write_text("def main():\n    raise SystemExit(1)\n")
    ours = str(Path(door.__file__).resolve().parents[2])
    run = hook_client._RUN.format(package=ours).replace("\nmain()", "\nprint(main.__code__.co_filename)")
    done = subprocess.run(
        [sys.executable, "-P", "-c", run],
        env={**os.environ, "PYTHONPATH": str(other.parents[1])},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.strip() == daemon.__file__
