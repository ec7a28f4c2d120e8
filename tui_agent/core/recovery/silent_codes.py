"""Exit codes by which programs say without a word what went wrong, as their own documentation lists them.

Pure, and bounded in time for any text. If another command could have set the code, nothing is said of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from tui_agent.core.recovery.exit_code import Unknown, read_command
from tui_agent.shell_programs import program_name, unwrapped

_KILLED: Mapping[int, str] = {
    124: "its time limit ended it",
    137: "it was killed, by its time limit or for want of memory",
    139: "it reached beyond its memory and crashed",
}
_SILENT: Mapping[str, Mapping[int, str]] = {
    "curl": {
        3: "the address is malformed",
        6: "the host's name cannot be resolved",
        7: "nothing listens at that host and port",
        22: "the server answered with an error, 400 or above",
        23: "what came could not be written",
        26: "a file to send cannot be read",
        28: "no answer within the time limit",
        35: "the TLS connection could not be made",
        47: "too many redirects",
        52: "the server closed the connection without an answer",
        56: "the connection broke while data came",
        60: "the server's certificate is not trusted",
    },
    "wget": {
        4: "the network failed, or the host's name cannot be resolved",
        5: "the server's certificate is not trusted",
        8: "the server answered with an error",
    },
    "rsync": {
        1: "the options are wrong",
        3: "a source or a target folder is not there",
        10: "the connection failed",
        11: "a file could not be read or written",
        12: "the other side ended the protocol",
        23: "some files could not be transferred",
        24: "some files vanished before they were transferred",
        30: "no data within the time limit",
        35: "no connection within the time limit",
    },
    "ssh": {255: "ssh itself failed: no connection, or no login"},
    "scp": {255: "ssh itself failed: no connection, or no login"},
    "timeout": {
        125: "timeout itself failed",
        126: "the program cannot be run",
        127: "the program is not there",
    },
}


def silent_code(command: str, code: int) -> str:
    """Say what the exit code of a command means that wrote nothing; "" if nobody knows."""
    read = read_command(command)
    if read is None:
        return ""
    for one in reversed(read[1]):
        if isinstance(one, Unknown):
            return ""
        words = unwrapped(one.words)
        for name in map(program_name, (*words[:1], *one.words[:1])):
            if said := _SILENT.get(name, {}).get(code, ""):
                return f"{name}: {said}"
    return _KILLED.get(code, "")
