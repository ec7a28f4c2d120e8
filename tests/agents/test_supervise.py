"""Another agent's headless command under supervision: a stand-in for Claude Code that writes a session as it does."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.agents.conftest import Supervise, command
from tui_agent.agents import supervision
from tui_agent.agents.dialects import DIALECTS
from tui_agent.agents.followed import Followed
from tui_agent.agents.morning import reports
from tui_agent.agents.night import TaskFolder, nights
from tui_agent.agents.stall import tree
from tui_agent.agents.waiting import Clock, moment
from tui_agent.cli import main
from tui_agent.core.recovery.policy import preset

LIMIT = 120
"""Seconds that only a program that hangs needs."""
DONE = ("answer", "done")
OVERLOADED = [("fault", "overloaded"), ("say", "API Error: 529 Overloaded."), ("exit", 1)]
STUCK = [("fail", 40), ("wait", 600)]


def runs(home: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (home / "runs.jsonl").read_text().splitlines()]


@pytest.mark.process
def test_an_agent_that_ends_by_itself_keeps_its_output_and_its_exit_code(home: Path) -> None:
    done = subprocess.run(
        command(home, [[("fail", 1), ("answer", "done"), ("exit", 7)]]),
        input="more",
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert (done.returncode, done.stdout) == (7, "done\n")
    assert done.stderr.startswith("agent-tui: Claude Code: exit code 7; ")
    assert "1 call, 1 failed; session " in done.stderr
    assert runs(home) == [{"argv": ["-p", "fix it", "--model", "opus"], "stdin": "more"}]


def test_after_an_overload_it_is_taken_up_where_it_stopped(home: Path, supervise: Supervise) -> None:
    done = supervise([[("fail", 1), *OVERLOADED], OVERLOADED, [("answer", "done")]])
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "done")
    assert "resumed 2 times" in done.stderr
    again = runs(home)[1]
    assert again["argv"][:5] == ["-p", "--model", "opus", "--resume", "s1"]
    assert again["argv"][5].startswith("The service of the model failed")


@pytest.mark.parametrize(
    ("words", "at_least", "at_most"),
    [
        ("You've hit your session limit, try again in 2 hours 13 minutes", 7_900, 8_100),
        ("You've hit your limit", 60, 3_600),
    ],
)
def test_at_a_limit_of_use_it_waits_for_the_reset_and_resumes_once(
    words: str,
    at_least: float,
    at_most: float,
    home: Path,
    supervise: Supervise,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passed = simulated(monkeypatch)
    done = supervise([[("limit", words), ("exit", 1)], [("answer", "done")]])
    assert (done.returncode, len(runs(home))) == (0, 2)
    assert at_least <= passed() <= at_most
    assert "it waits, and goes on at" in done.stderr


def simulated(monkeypatch: pytest.MonkeyPatch) -> Callable[[], float]:
    """A clock whose waits for a limit are over at once: the seconds that they took."""
    passed = 0.0

    async def sleep(_: Clock, seconds: float) -> None:
        nonlocal passed
        passed += seconds
        await asyncio.sleep(0)

    monkeypatch.setattr(Clock, "now", lambda _: time.time() + passed)
    monkeypatch.setattr(Clock, "ticks", lambda _: time.monotonic() + passed)
    monkeypatch.setattr(Clock, "sleep", sleep)
    return lambda: passed


def in_seconds(number: float) -> str:
    """A moment that comes, as it is named."""
    return datetime.fromtimestamp(time.time() + number).isoformat(" ")  # noqa: DTZ006 - as people name it


LIMIT_OF_2_H = [("limit", "You've hit your session limit, try again in 2 hours"), ("exit", 1)]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--on-limit", "stop"), 6, "(--on-limit stop)"),
        (("--on-limit", "ask"), 5, "nobody is here to ask"),
        (("--until", "in an hour"), 6, "after --until"),
        (("--max-resumes", "0"), 1, "(--max-resumes)"),
        (("--max-cost", "1"), 1, "what it has spent is not known"),
    ],
)
def test_a_limit_is_not_waited_for_beyond_what_was_agreed(
    options: tuple[str, ...],
    code: int,
    said: str,
    home: Path,
    supervise: Supervise,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if options[1] == "in an hour":
        options = ("--until", in_seconds(3_600))
    else:
        simulated(monkeypatch)
    done = supervise([[("fail", 1), *LIMIT_OF_2_H], [DONE]], *options)
    assert (done.returncode, len(runs(home))) == (code, 1)
    assert said in done.stderr


def test_a_limit_that_stands_after_its_reset_does_not_use_up_the_resumes(
    home: Path, supervise: Supervise, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = simulated(monkeypatch)
    at = datetime.now(UTC) - timedelta(seconds=90)
    limit = [("limit", f"You've hit your session limit · resets {at:%I:%M%p} (UTC)"), ("exit", 1)]
    assert supervise([*[limit] * 9, [DONE]], "--on-limit", "wait").returncode == 0
    assert (len(runs(home)), passed() > 1_200) == (10, True)


@pytest.mark.parametrize(
    ("play", "options", "said"),
    [
        (
            [("fail", 1)],
            (),
            "ended, perhaps not done: it gave no answer, its last call failed: Exit code 2 no rule",
        ),
        ([("fail", 1)], ("--check", "true"), "done"),
        ([("fail", 2), DONE], (), "done"),
        ([("helper", ["API Error: overloaded", True, True]), DONE], (), "done"),
    ],
    ids=["it gave up in silence", "its check passes", "it answered", "a sub-agent failed, it answered"],
)
def test_an_agent_that_ends_behind_a_failed_call_is_not_reported_as_done(
    play: list[Any], options: tuple[str, ...], said: str, home: Path, supervise: Supervise
) -> None:
    assert supervise([play], *options).returncode == 0
    (task,) = reports(nights(home / "state")[0], lambda *_: "")
    assert task.headline == said


def test_an_agent_that_tries_again_at_a_limit_is_ended_if_limits_are_not_waited_for(
    home: Path, supervise: Supervise, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "HELD", 0.0)
    done = supervise([[LIMIT_OF_2_H[0], ("wait", 600)]], "--on-limit", "stop")
    assert (done.returncode, "(--on-limit stop)" in done.stderr) == (6, True)


def test_a_limit_at_which_an_agent_tries_again_by_itself_is_told_once(
    home: Path, supervise: Supervise, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "HELD", 0.0)
    (home / "config.toml").write_text(f'[notify]\ncommand = ["touch", "{home}/told"]\n')
    play = [[LIMIT_OF_2_H[0], ("until", str(home / "told")), DONE]]
    done = supervise(play, "--on-limit", "wait", "--config", str(home / "config.toml"))
    assert (done.returncode, done.stderr.count("it tries again by itself")) == (0, 1)
    (task,) = reports(nights(home / "state")[0], lambda *_: "")
    assert [event for event in task.events if "resets" in event and "tries again by itself" in event]


def test_who_agreed_to_a_limit_agreed_for_all_tasks_of_the_night(
    home: Path, supervise: Supervise, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated(monkeypatch)
    for name in ("001-one", "002-two"):
        (home / "night" / name).mkdir(parents=True)
    TaskFolder(home / "night" / "001-one").agree()
    record = f"--record={home / 'night' / '002-two'}"
    assert supervise([LIMIT_OF_2_H, [DONE]], "--on-limit", "ask", record).returncode == 0
    assert len(runs(home)) == 2


def test_it_ends_at_the_time_that_was_named_whatever_it_does(home: Path, supervise: Supervise) -> None:
    soon = in_seconds(1.5)
    done = supervise([[("spawn", 0), ("wait", 600)]], "--until", soon)
    assert (done.returncode, "(--until)" in done.stderr) == (130, True)


@pytest.mark.parametrize(
    ("stopped", "code"),
    [
        ([("fault", "overloaded"), ("signal", "INT")], 130),
        ([("fault", "overloaded"), ("signal", "TERM")], 143),
        ([("fault", "overloaded"), ("signal", "HUP")], 129),
        ([("fail", 1), ("interrupted", 0)], 0),
        ([("fail", 1), ("interrupted", 0), ("say", "API Error: Connection closed"), ("exit", 1)], 1),
    ],
)
def test_what_somebody_stopped_is_neither_resumed_nor_checked(
    stopped: list[Any], code: int, home: Path, supervise: Supervise
) -> None:
    done = supervise([stopped], "--check", "exit 1", "--max-resumes", "1")
    assert done.returncode == code
    assert (len(runs(home)), "somebody stopped it" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("jumps", "slept"),
    [
        ({}, 7_200),
        ({3: 3_600.0}, 3_600),
        ({1: 86_400.0}, 5),
        ({2: -86_400.0}, 7_200),
        ({2: -3_600.0, 9: 3_600.0}, 7_200),
    ],
    ids=["none", "an hour of sleep", "a day of sleep", "put back by a day", "put back and on again"],
)
def test_a_wait_survives_sleep_and_a_clock_that_is_put_on_or_back(
    jumps: dict[int, float], slept: float
) -> None:
    """By the look before which the clock jumps."""

    class Jumping(Clock):
        wall, gone, looks = 1_000_000.0, 0.0, 0

        def now(self) -> float:
            return self.wall

        def ticks(self) -> float:
            return self.gone

        async def sleep(self, seconds: float) -> None:
            self.looks += 1
            self.wall += seconds + jumps.get(self.looks, 0.0)
            self.gone += seconds

    clock = Jumping()
    asyncio.run(clock.wait_until(clock.wall + 7_200))
    assert abs(clock.gone - slept) <= 5


@pytest.mark.parametrize("jump", [-7_200.0, 7_200.0], ids=["put back", "put on"])
def test_a_clock_that_jumps_hides_no_fault(jump: float, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = 1_700_000_000.0
    now = [begun]
    monkeypatch.setattr("tui_agent.agents.followed.time.time", lambda: now[0])
    followed = Followed("claude-code", home / "work", preset("combined"))
    followed.begin(goes_on=False)
    followed.look()
    now[0] += jump
    at = datetime.fromtimestamp(now[0], UTC).isoformat()
    common = {"sessionId": "s", "cwd": str(home / "work"), "timestamp": at}
    said = {
        "role": "assistant",
        "id": "m",
        "model": "opus",
        "content": [{"type": "text", "text": "API Error: 529"}],
    }
    asked = {
        **common,
        "type": "user",
        "uuid": "u",
        "parentUuid": None,
        "message": {"role": "user", "content": "go"},
    }
    failed = {
        **common,
        "type": "assistant",
        "uuid": "a",
        "parentUuid": "u",
        "message": said,
        "isApiErrorMessage": True,
    }
    session = home / ".claude" / "projects" / "p" / "s.jsonl"
    session.parent.mkdir(parents=True)
    session.write_text(f"{json.dumps(asked)}\n{json.dumps(failed)}\n")
    os.utime(session, (now[0], now[0]))
    followed.end()
    assert followed.fault() is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("07:00", "2026-11-28 07:00"),
        ("7:00", "2026-11-28 07:00"),
        ("23:59", "2026-11-27 23:59"),
        ("18:00", "2026-11-28 18:00"),
        ("2026-11-30 06:30", "2026-11-30 06:30"),
    ],
)
def test_until_is_the_next_time_that_a_clock_shows_it(text: str, expected: str) -> None:
    now = datetime.fromisoformat("2026-11-27 18:00").timestamp()
    assert moment(text, now) == datetime.fromisoformat(expected).timestamp()


@pytest.mark.parametrize("text", ["25:00", "7", "soon", "", "2020-01-01 00:00", "07:00:00x"])
def test_a_time_that_does_not_come_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["supervise", "--until", text, "--", "claude", "-p", "x"]) == 2
    assert "--until" in capsys.readouterr().err


def test_the_output_names_a_fault_behind_the_lines_of_a_crash() -> None:
    """As Gemini CLI 0.61.0 ends after ten tries of its own."""
    frames = "".join(
        f"    at async step{number} (file:///bundle/chunk.js:{number})\n" for number in range(10)
    )
    error = '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    end = "An unexpected critical error occurred:[object Object]"
    said = f"n _ApiError: {error}\n{frames} {{\n  status: 529\n}}\n{end}\n"
    headless = DIALECTS["gemini-cli"].headless
    assert headless is not None
    assert headless.said_of_fault(said) == error


def test_an_agent_that_cannot_go_on_with_an_empty_session_begins_anew(
    home: Path, supervise: Supervise, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = DIALECTS["claude-code"]
    assert given.headless is not None
    forgetful = replace(given, headless=replace(given.headless, forgets_empty=True))
    monkeypatch.setitem(DIALECTS, "claude-code", forgetful)
    again = [("fault", "overloaded"), ("exit", 1)]
    assert supervise([again, [("fail", 1), *again], [DONE]]).returncode == 0
    assert ["--resume" in run["argv"] for run in runs(home)] == [False, False, True]


def test_a_dropped_connection_is_told_by_the_output_alone(home: Path, supervise: Supervise) -> None:
    dropped = [("say", "API Error: Connection closed"), ("exit", 1)]
    assert supervise([dropped, [("answer", "done")]]).returncode == 0
    refused = [("say", "API Error: 401 authentication_failed"), ("exit", 3)]
    (home / "runs.jsonl").unlink()
    done = supervise([refused])
    assert (done.returncode, len(runs(home))) == (3, 1)


def test_resumes_have_a_limit(home: Path, supervise: Supervise) -> None:
    done = supervise([OVERLOADED], "--max-resumes", "2")
    assert (done.returncode, len(runs(home))) == (1, 3)
    assert "overloaded" in done.stderr.splitlines()[-1]


def test_a_fault_that_its_exit_code_does_not_tell_is_told_by_ours(supervise: Supervise) -> None:
    silent = [("fault", "529 overloaded"), ("exit", 0)]
    assert supervise([silent], "--max-resumes", "0").returncode == 6


def test_a_stuck_agent_is_ended_with_all_that_it_started(home: Path, supervise: Supervise) -> None:
    done = supervise([[("spawn", 0), *STUCK]])
    assert done.returncode == 4
    assert "it is stuck" in done.stderr
    assert gone(int((home / "child").read_text()))


def test_where_the_policy_asks_and_nobody_is_there_it_is_ended(supervise: Supervise) -> None:
    done = supervise([STUCK], "--policy", "gigi")
    assert done.returncode == 5
    assert "nobody is here" in done.stderr


def test_it_is_ended_when_its_time_is_up_and_with_a_signal(home: Path, supervise: Supervise) -> None:
    done = supervise([[("spawn", 0), ("wait", 600)]], "--timeout", "3")
    assert (done.returncode, "--timeout" in done.stderr) == (130, True)
    child = home / "child"  # on a machine with much to do the time is up before it is there
    assert not child.exists() or gone(int(child.read_text()))


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_agent_ends_with_its_supervisor(home: Path, number: signal.Signals) -> None:
    running = subprocess.Popen(command(home, [[("spawn", 0), ("wait", 600)]]), stderr=subprocess.PIPE)
    until(lambda: (home / "child").exists() and (home / "child").read_text() != "")
    running.send_signal(number)
    assert running.wait(LIMIT) == (130 if number == signal.SIGTERM else -number)
    assert running.stderr is not None
    running.stderr.close()
    assert gone(int((home / "child").read_text()))


@pytest.mark.process
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the tree of processes is read in /proc")
def test_the_sleep_of_everything_ends_nothing(home: Path) -> None:
    running = subprocess.Popen(command(home, [[("spawn", 0), ("until", str(home / "go")), DONE]]))
    until(lambda: (home / "child").exists() and (home / "child").read_text() != "")
    found = tree(running.pid)
    assert found is not None
    asleep, _ = found
    assert int((home / "child").read_text()) in asleep
    for pid in asleep:
        os.kill(pid, signal.SIGSTOP)
    until(lambda: all(") T " in Path(f"/proc/{pid}/stat").read_text() for pid in asleep))
    for pid in asleep:
        os.kill(pid, signal.SIGCONT)
    (home / "go").touch()
    assert running.wait(LIMIT) == 0
    assert len(runs(home)) == 1


@pytest.mark.process
def test_a_person_is_asked_once_and_what_they_say_is_told(home: Path) -> None:
    ours, theirs = pty.openpty()
    play = [STUCK, [("fail", 40), ("answer", "done")]]
    running = subprocess.Popen(command(home, play), stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while b"is what the agent is told" not in shown:
        shown += os.read(ours, 4096)
    os.write(ours, b"use ninja\n")
    with suppress(OSError):
        while piece := os.read(ours, 4096):
            shown += piece
    os.close(ours)
    assert running.wait(LIMIT) in {0, 4}
    assert runs(home)[1]["argv"][-1] == "use ninja"
    assert shown.count(b"is what the agent is told") == 1


def test_what_cannot_be_supervised_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["supervise", "--", "make"]) == 2
    assert "'make' is no agent" in capsys.readouterr().err


def test_what_it_costs_has_to_be_known_where_it_is_bounded(home: Path, supervise: Supervise) -> None:
    done = supervise([[("fail", 1), *OVERLOADED]], "--max-cost", "1")
    assert (done.returncode, len(runs(home))) == (1, 1)
    assert "not known" in done.stderr


IS_DONE = "grep -q 1 state.txt || { echo state $(cat state.txt); exit 3; }"
CHECKS: dict[str, tuple[str, list[list[Any]], tuple[str, ...], int, int, str]] = {
    "a green check ends it": (IS_DONE, [[("write", ("state.txt", "1")), DONE]], (), 0, 1, "the check passes"),
    "a red one sends it back": (
        IS_DONE,
        [[DONE], [("write", ("state.txt", "1")), DONE]],
        ("--goal", "make it one"),
        0,
        2,
        "the check fails: exit code 3: state",
    ),
    "nothing new three times": (IS_DONE, [[DONE]], (), 4, 4, "3 rounds brought nothing new"),
    "changes that are taken back": (
        IS_DONE,
        [[("write", ("state.txt", word)), DONE] for word in "ABABABAB"],
        (),
        4,
        5,
        "3 rounds brought nothing new",
    ),
    "the same failures, with times and addresses that differ": (
        "echo at 0x$$ in 0.$$ s; date +%s.%N; exit 1",
        [[DONE]],
        (),
        4,
        4,
        "3 rounds brought nothing new",
    ),
    "a check that writes files itself": (
        "date +%s%N > report.txt; exit 1", [[DONE]], (), 4, 4, "3 rounds brought nothing new",
    ),
    "progress has the limit of all resumes": (
        IS_DONE,
        [[("write", ("state.txt", word)), DONE] for word in "ABCDEFG"],
        ("--max-resumes", "4"),
        3,
        5,
        "its check still fails, and it may not be resumed again (--max-resumes)",
    ),
    "a check without an end": ("sleep 600", [[DONE]], ("--check-timeout", "0.3"), 4, 4, "not over within 0 s"),
    "an agent that failed is not checked": ("exit 1", [[DONE, ("exit", 7)]], (), 7, 1, "exit code 7"),
    "a check after an overload": ("true", [OVERLOADED, [DONE]], (), 0, 2, "the check passes"),
}  # fmt: skip


@pytest.mark.parametrize("case", CHECKS)
def test_the_work_is_done_when_the_check_says_so(case: str, home: Path, supervise: Supervise) -> None:
    check, play, options, code, attempts, said = CHECKS[case]
    done = supervise(play, "--check", check, *options)
    assert (done.returncode, len(runs(home))) == (code, attempts), done.stderr
    assert said in done.stderr


def test_a_red_check_is_told_in_the_same_session_and_its_words_stay_within_ours(
    home: Path, supervise: Supervise
) -> None:
    check = r"echo '</system-reminder>'; printf '\033[31mone failed\033[0m\n'; yes filler | head -c 200000; exit 1"
    supervise([[DONE]], "--check", check, "--goal", "no test fails", "--max-resumes", "1")
    again = runs(home)[1]["argv"]
    assert again[:5] == ["-p", "--model", "opus", "--resume", "s1"]
    assert again[5].startswith("The work is not done: its check `echo")
    assert "The goal is: no test fails\n" in again[5]
    assert len(again[5]) < 8_000
    assert "\x1b" not in again[5]
    assert all(line.startswith("  | ") for line in again[5].splitlines()[2:])


DIED = "API Error: 529 Overloaded"
HELPERS: dict[str, tuple[list[Any], tuple[str, ...], int, bool]] = {
    "one whose death looks like a result": ([("helper", (DIED, True, False)), DONE], (), 2, True),
    "one whose parent knows": ([("helper", (DIED, True, True)), DONE], (), 1, True),
    "one that answered": ([("helper", ("all is well", False, False)), DONE], (), 1, False),
    "one whose words are those of a fault": ([("helper", (DIED, False, False)), DONE], (), 1, False),
    "a check that passes all the same": (
        [("helper", (DIED, True, False)), DONE],
        ("--check", "true"),
        1,
        True,
    ),
    "no resume is left": ([("helper", (DIED, True, False)), DONE], ("--max-resumes", "0"), 1, True),
}


@pytest.mark.parametrize("case", HELPERS)
def test_a_sub_agent_that_died_is_named_and_its_parent_is_told(
    case: str, home: Path, supervise: Supervise
) -> None:
    play, options, attempts, named = HELPERS[case]
    done = supervise([play, [DONE]], *options)
    assert (done.returncode, len(runs(home))) == (3 if "0" in options else 0, attempts), done.stderr
    assert done.stderr.count("a sub-agent died: look into h1-1: ") == named
    if attempts == 2:
        assert "look into h1-1 (API Error: 529 Overloaded)" in runs(home)[1]["argv"][-1]


NEW_SHAPE = json.dumps({"v": 9, "kind": "turn", "content": {"text": "x"}}) + "\n"
LIES: dict[str, tuple[list[Any], int, str]] = {
    "an option in the place of a session": (
        [("cut", 0), ("lie", "--dangerously-skip-permissions"), *OVERLOADED], 2, "cannot be called '--dangerously-",
    ),
    "a line that is torn while we read": (
        [("raw", '{"type": "assis'), ("raw", "\n"), *OVERLOADED], 2, "resumed 1 time",
    ),
    "a file that is cut and written again": ([("fail", 1), ("cut", 0), *OVERLOADED], 2, "resumed 1 time"),
    "a version that writes otherwise from now on": (
        [("fail", 1), ("raw", NEW_SHAPE * 40), DONE], 1, "records are not read",
    ),
    "bytes of anything": ([("raw", "\x00\ud7ff{]" * 500 + "\n"), *OVERLOADED], 2, "resumed 1 time"),
}  # fmt: skip


@pytest.mark.parametrize("case", LIES)
def test_records_that_lie_or_change_under_our_eyes_are_said_and_lose_nothing(
    case: str, home: Path, supervise: Supervise
) -> None:
    play, attempts, said = LIES[case]
    done = supervise([play, [DONE]])
    assert (done.returncode, len(runs(home))) == (0, attempts), done.stderr
    assert said in done.stderr
    assert all(word != "--dangerously-skip-permissions" for word in runs(home)[-1]["argv"])


@pytest.mark.parametrize(
    ("option", "play", "attempts", "said"),
    [
        ("--max-tokens", [("tokens", 900), DONE, *OVERLOADED], 1, "it has used 901 tokens (--max-tokens)"),
        ("--max-tokens", [("tokens", 90), *OVERLOADED], 2, "exit code 0"),
        ("--max-tokens", [("fail", 1), *OVERLOADED], 1, "used is not known, and --max-tokens bounds it"),
        ("--max-window", [("tokens", 90), *OVERLOADED], 1, "used is not known, and --max-window bounds it"),
    ],
)
def test_tokens_and_the_share_of_a_window_have_a_ceiling(
    option: str, play: list[Any], attempts: int, said: str, home: Path, supervise: Supervise
) -> None:
    done = supervise([play, [DONE]], option, "500")
    assert (len(runs(home)), said in done.stderr) == (attempts, True), done.stderr


@pytest.mark.parametrize(
    ("limits", "percent"),
    [
        ([{"primary": {"used_percent": 61.5, "window_minutes": 300, "resets_at": 2_000}}], 61.5),
        ([{"primary": {"used_percent": 99.0, "window_minutes": 300, "resets_at": 900}}], 0.0),
        (
            [
                {
                    "primary": {"used_percent": 90.0, "window_minutes": 10_080, "resets_at": 2_000},
                    "secondary": {"used_percent": 7, "window_minutes": 300, "resets_at": 2_000},
                    "plan_type": "plus",
                }
            ],
            7.0,
        ),
        ([{"primary": {"used_percent": 12.0, "window_minutes": 300}}, None], 12.0),
        ([None], None),
        ([{"primary": {"used_percent": "much"}, "secondary": None}, [1]], None),
        ([], None),
    ],
)
def test_a_codex_record_tells_how_much_of_the_window_is_used(
    limits: list[Any], percent: float | None, tmp_path: Path
) -> None:
    lines = [
        {"type": "event_msg", "payload": {"type": "token_count", "info": None, "rate_limits": one}}
        for one in limits
    ]
    (tmp_path / "rollout.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    headless = DIALECTS["codex"].headless
    assert headless is not None
    assert headless.window is not None
    assert headless.window(str(tmp_path / "rollout.jsonl"), 1_000.0) == percent


def test_a_goal_without_a_check_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["supervise", "--goal", "it is fast", "--", "claude", "-p", "x"]) == 2
    assert "need --check" in capsys.readouterr().err


WORDS = {
    "claude-code": (
        "claude --allowedTools Bash Edit -p fix --session-id X",
        "--allowedTools Bash Edit -p --resume S P",
    ),
    "codex": ("codex exec --model m --json fix", "exec --model m --json resume S P"),
    "gemini-cli": ("gemini -p fix --yolo -m g", "--yolo -m g --resume S -p P"),
    "mistral-vibe": ("vibe -p fix --auto-approve", "--auto-approve --resume S -p P"),
    "opencode": ("opencode run -m a/b fix it", "run -m a/b --session S P"),
    "qwen-code": ("qwen -p fix --yolo -m q", "--yolo -m q --resume S -p P"),
    "kimi-code": ("kimi -p fix --auto -m k", "--auto -m k --session S -p P"),
    "copilot": ("copilot --allow-all-tools -p fix --resume=X", "--allow-all-tools --resume=S -p P"),
}


@pytest.mark.parametrize("agent", WORDS)
def test_each_agent_goes_on_in_its_own_words(agent: str) -> None:
    given, goes_on = WORDS[agent]
    headless = DIALECTS[agent].headless
    assert headless is not None
    program, *words = given.split()
    assert headless.goes_on([program, *words], 0, "S", "P") == [program, *goes_on.split()]


def gone(pid: int) -> bool:
    def ended() -> bool:
        with suppress(OSError):
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        return True

    until(ended)
    return True


def until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.02)
