"""Waiting is no loop: what waits, and what only takes its time."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.recovery.player import Player
from tui_agent.core.recovery.command_reading import read
from tui_agent.core.recovery.polling import clock_moved, told_to_wait, waits

WAITING = [
    "sleep 1; cat state",
    "cd a && sleep 5 && curl -sf localhost:8000",
    "for i in 1 2 3; do sleep 1; curl -s localhost; done",
    "until curl -s localhost; do sleep 1; done",
    "wait-for-it.sh db:5432",
    "timeout 5 tail -f log",
    "kubectl rollout status deploy/web",
    "kubectl wait --for=condition=ready pod/a",
    "gh run watch 12",
    "python -c 'import time; time.sleep(3)'",
]
NOT_WAITING = [
    "cat sleep.txt",
    "grep -rn sleep src",
    "git log -f",
    "echo wait",
    "tail -5 log",
    "pytest --sleepy",
    "make",
]


@pytest.mark.parametrize("command", WAITING)
def test_a_command_that_sleeps_or_watches_waits(command: str) -> None:
    assert told_to_wait({"command": command})


@pytest.mark.parametrize("command", NOT_WAITING)
def test_other_commands_do_not(command: str) -> None:
    assert not told_to_wait({"command": command})
    assert waits({"command": command}, 1.2)
    assert not waits({"command": command}, 0.9)


CLOCKS: list[tuple[str, str, bool]] = [
    ("web Up 3 seconds", "web Up 9 seconds", True),
    ("pod 0/1 Pending 12s", "pod 0/1 Pending 1m3s", True),
    ("now 12:00:01", "now 12:00:09", True),
    ("12 passed in 0.10s", "12 passed in 0.13s", False),
    ("12 passed", "12 passed", False),
    ("took 3 seconds", "took 3 seconds", False),
]


@pytest.mark.parametrize(("one", "other", "moved"), CLOCKS)
def test_a_clock_moves_and_the_time_that_tests_took_is_none(one: str, other: str, moved: bool) -> None:
    assert clock_moved(one, other) is moved


def test_a_long_call_is_repeated_thirty_times_and_a_short_one_four() -> None:
    for duration, guided in ((1.5, 30), (0.2, 4)):
        player, number = Player(), 0
        while player.level == "continue" or not number:
            number += 1
            call: dict[str, Any] = {
                "tool": "bash",
                "input": {"command": "./status"},
                "ok": True,
                "content": "pending",
            }
            player.batch({**call, "duration": duration})
        assert number == guided


def test_a_build_that_takes_long_to_fail_is_no_poll() -> None:
    player = Player(operator_present=True)
    for _ in range(3):
        player.batch(
            {
                "tool": "bash",
                "input": {"command": "make"},
                "ok": False,
                "error": "exit code 2: x",
                "duration": 9.0,
            }
        )
    assert player.level == "escalate"


@pytest.mark.parametrize("piece", ["timeout 1", "kubectl ", "tail -", " ", "1", "1h", "a;"])
def test_a_hostile_text_takes_little_time(piece: str) -> None:
    hostile = piece * 8_000
    before = time.process_time()
    told_to_wait({"command": hostile})
    clock_moved(hostile, hostile + "1:00:00")
    assert time.process_time() - before < 1.0


@pytest.mark.parametrize("command", ["\n" * 19_000, "<<E\n" * 4_900], ids=["blank lines", "here-documents"])
def test_a_command_that_goes_on_and_on_is_read_at_once(command: str) -> None:
    started = time.process_time()
    told_to_wait({"command": command})
    read(command)
    assert time.process_time() - started < 0.5


def test_the_text_of_a_here_document_writes_no_file() -> None:
    found = read("cat <<'E' > kept.txt\necho x > not.txt\nE\necho <<F\ntee also.txt\n")

    assert found.writes == ("kept.txt", "also.txt")
