"""One hook event to the keeper, and its answer back: what another agent runs at each of its events.

Run as a file of its own, `python -I -S door.py AGENT [ADVISE [POLICY]]`, with the event on standard input. It imports
next to nothing, since every call of the agent waits for it: `_socket` is what `socket` wraps, and takes half the time.
Whatever goes wrong, nothing is answered, the exit code is 0, and the agent goes on as if nobody had been asked.
"""

import _socket
import fcntl
import os
import sys
import time

PATIENCE = 10.0
"""Seconds for an answer."""
_START = 10.0
"""Seconds for a keeper to begin."""
_TRIES = 3
"""Times that an event is sent where a keeper dies before it has answered."""
LARGEST = 32 << 20
"""Bytes of an event; a longer one is not looked at."""
_PASSED = ("AGENT_TUI_", "XDG_")
"""Beginnings of the names of variables that say where our files are."""


def place() -> str:
    """The keeper's socket, in a folder of this user's alone, by the time of this file: new code has its own keeper.

    Raises `OSError` where the folder is somebody else's.
    """
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = os.path.join(base, "agent-tui") if base else f"/tmp/agent-tui-{os.getuid()}"
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        found = os.lstat(folder)
        if found.st_uid != os.getuid() or found.st_mode & 0o170077 != 0o040000:
            raise PermissionError(folder) from None
    return os.path.join(folder, f"hooks-{os.stat(__file__).st_mtime_ns:x}")


def ask(event: bytes, arguments: list[str]) -> bytes:
    """The keeper's answer. Raises `OSError`."""
    passed = [
        f"{name}={value}" for name, value in os.environ.items() if name.startswith(_PASSED) or name == "HOME"
    ]
    words = [*[*arguments, "", "", ""][:3], os.getcwd(), *passed]
    head = b"\0".join(os.fsencode(word) for word in words)
    for again in range(_TRIES):
        answer = _answer(b"%d %d %d\n" % (again, len(head), len(event)) + head + event)
        if answer:
            return answer.rstrip(b"\n")
    return b""


def _answer(request: bytes) -> bytes:
    """A line; nothing where the keeper died over it."""
    connection = _connected(place())
    connection.settimeout(PATIENCE)
    answer = b""
    try:
        connection.sendall(request)
        while piece := connection.recv(1 << 16):
            answer += piece
    except ConnectionError:
        return b""
    return answer if answer.endswith(b"\n") else b""


def _connected(path: str) -> "_socket.socket":
    ends = time.monotonic() + _START
    while True:
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            connection.connect(path)
            return connection
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            if time.monotonic() > ends:
                raise
        _start(path)
        time.sleep(0.02)


def _start(path: str) -> None:
    """Begin a keeper that is nobody's child; of many who find none, one begins it and hands it its lock."""
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return
    if os.fork() == 0:
        try:
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(null, stream)
            os.set_inheritable(lock, True)
            if os.fork() == 0:
                os.chdir("/")
                package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
                run = f"import sys; sys.path.append({package!r}); from tui_agent.agents.keeper import main; main()"
                os.execv(sys.executable, [sys.executable, "-P", "-c", run, path, str(lock)])
        finally:
            os._exit(0)
    os.close(lock)
    os.wait()


def main() -> None:
    """Answer the event on standard input."""
    try:
        event = sys.stdin.buffer.read(LARGEST + 1)
        if len(event) <= LARGEST:
            sys.stdout.buffer.write(ask(event, sys.argv[1:]))
            sys.stdout.flush()
    except Exception:
        pass  # the agent goes on whatever happens here


if __name__ == "__main__":
    main()
