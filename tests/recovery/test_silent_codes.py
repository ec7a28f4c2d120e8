"""What exit codes mean by which programs say without a word what went wrong."""

from __future__ import annotations

import pytest

from tui_agent.core.recovery.silent_codes import silent_code
from tui_agent.formats.importers.results import says_timed_out

MEANINGS = [
    ("curl -sf localhost:8000", 7, "nothing listens"),
    ("curl -s https://nowhere.example", 6, "cannot be resolved"),
    ("curl -sf localhost/x && echo ok", 22, "answered with an error"),
    ("curl -s --max-time 2 localhost", 28, "time limit"),
    ("sudo curl -s https://x", 35, "TLS"),
    ("curl -s localhost:1", 52, "without an answer"),
    ("curl -s localhost:1", 56, "broke while data came"),
    ("rsync -q a b:c", 23, "some files"),
    ("ssh host true", 255, "no connection, or no login"),
    ("timeout 5 sleep 9", 124, "time limit"),
    ("timeout 5 nothing", 127, "not there"),
    ("./prog", 137, "killed"),
    ("bash -c './prog'", 139, "crashed"),
    ("su - tester -c 'curl -s localhost:1'", 7, "nothing listens"),
    ("curl -s x || ./other", 7, ""),
    ("curl -s x | jq .", 7, ""),
    ("./prog", 7, ""),
    ("if curl", 7, ""),
]


@pytest.mark.parametrize(("command", "code", "words"), MEANINGS)
def test_a_silent_code_has_its_meaning(command: str, code: int, words: str) -> None:
    said = silent_code(command, code)
    assert words in said if words else not said


TRACEBACK = """Traceback (most recent call last):
  File "a.py", line 3, in get
    return self.request(url, timeout=timeout)
  File "b.py", line 9, in request
    sock.settimeout(timeout)
{}"""
TIMES = [
    (TRACEBACK.format("ValueError: bad url"), False),
    (TRACEBACK.format("socket.timeout: timed out"), True),
    ("exit code 124\n^C\n\n**Exited due to timeout**", True),
    ("exit code 1\ngot an unexpected keyword argument: timeout=5", False),
    ("context deadline exceeded", True),
    ("Error: command timed out after 120 s", True),
]


@pytest.mark.parametrize(("message", "timed_out"), TIMES)
def test_a_parameter_called_timeout_is_no_time_out(message: str, timed_out: bool) -> None:
    assert says_timed_out(message) is timed_out
