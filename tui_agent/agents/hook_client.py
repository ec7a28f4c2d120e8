"""One hook event to the daemon, and its answer back.

Every call of the agent waits for it, so it imports next to nothing: `os` alone is a sixth of what Python takes to
begin, and what is needed of it stands in `posix`, as that of `socket` in `_socket`. Whatever goes wrong, nothing is
answered, and the agent goes on as if nobody had been asked.
"""

import _socket
import posix
import sys
import time

PATIENCE = 10.0
"""Seconds for an answer."""
_START = 10.0
"""Seconds for a daemon to begin."""
_TRIES = 3
"""Times that an event is sent where a daemon dies before it has answered."""
LARGEST = 32 << 20
"""Bytes of an event; a longer one is not looked at."""
_PASSED = (b"AGENT_TUI_", b"XDG_", b"HOME=")
"""Beginnings of the variables that say where our files are."""


def place() -> str:
    """The daemon's socket, in a folder of this user's alone, by the time of this file: new code has its own daemon.

    Raises `OSError` where the folder is somebody else's.
    """
    base = posix.environ.get(b"XDG_RUNTIME_DIR", b"").decode("utf-8", "surrogateescape")
    folder = f"{base.rstrip('/')}/agent-tui" if base else f"/tmp/agent-tui-{posix.getuid()}"
    try:
        posix.mkdir(folder, 0o700)
    except FileExistsError:
        found = posix.lstat(folder)
        if found.st_uid != posix.getuid() or found.st_mode & 0o170077 != 0o040000:
            raise PermissionError(folder) from None
    return f"{folder}/hooks-{posix.stat(__file__).st_mtime_ns:x}"


def ask(event: bytes, arguments: list[str]) -> bytes:
    """The daemon's answer. Raises `OSError`."""
    variables = [name + b"=" + value for name, value in posix.environ.items()]
    words = [word.encode("utf-8", "surrogateescape") for word in [*arguments, "", "", ""][:3]]
    head = b"\0".join([*words, posix.getcwdb(), *(one for one in variables if one.startswith(_PASSED))])
    for again in range(_TRIES):
        answer = _answer(b"%d %d %d\n" % (again, len(head), len(event)) + head + event)
        if answer:
            return answer.rstrip(b"\n")
    return b""


def _answer(request: bytes) -> bytes:
    """A line; nothing where the daemon died over it."""
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
    """Begin a daemon that is nobody's child; of many who find none, one begins it and hands it its lock."""
    import fcntl
    import os

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
                run = f"import sys; sys.path.append({package!r}); from tui_agent.agents.daemon import main; main()"
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
