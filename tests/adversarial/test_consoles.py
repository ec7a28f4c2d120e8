"""Attacks on the console in a real terminal: sizes, pastes, noise, poor terminals, signals and hang-ups."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.adversarial.attack import Attack, attack, attacks
from tests.console.terminal import Terminal

pytestmark = pytest.mark.process

Start = Callable[..., Terminal]
NOWHERE = ("-m", "tui_agent", "--model", "scripted:recovery")
DEMO = ("-m", "tui_agent", "demo", "recovery", "--step")


def processor(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def waits(pid: int, number: int) -> bool:
    """A signal was sent to the process and has not been taken yet."""
    status = Path(f"/proc/{pid}/status").read_text()
    return bool(int(status.partition("ShdPnd:")[2].split()[0], 16) & 1 << number - 1)


def load_is_over(terminal: Terminal) -> None:
    """What is loaded after the first paint is there: a second went by in which next to nothing was done."""
    used = [processor(terminal.pid)]

    def second_passed_quietly() -> bool:
        time.sleep(1)
        used.append(processor(terminal.pid))
        return used[-1] - used[-2] < 0.1

    terminal.until(second_passed_quietly)


def ended(terminal: Terminal) -> bool:
    return terminal._ended()


def leave(terminal: Terminal) -> None:
    terminal.send("\x11")
    assert terminal.code() == 0


@attack(
    "A megabyte pasted, with escape sequences, carriage returns and the end mark of a paste inside",
    "It is in the prompt within seconds, nothing of it is sent, and Ctrl+Q leaves",
    fell="parts were sent as tasks; 1.3 MB took half an hour of processor time",
    slow=True,
)
def test_paste_of_a_megabyte(start: Start) -> None:
    terminal = start(*NOWHERE)
    terminal.shows("F1 help")
    lines = "\x1b[31mline of colour\x1b[0m and \x1b]0;title\x07\r" * 25_000
    begun = time.monotonic()
    terminal.send(f"\x1b[200~{lines}\x1b[201~")
    terminal.until(lambda: "pasted" in terminal.picture or "lines" in terminal.picture)
    terminal.send("after")
    terminal.shows("after")
    assert time.monotonic() - begun < 40
    assert b"\x1b]0;title" not in terminal.output
    terminal.send("\x11")
    terminal.until(lambda: ended(terminal) or "Leav" in terminal.picture)


ANSWERS = "\x1b]11;rgb:ffff/0000/0000\x07\x1b[?1;2c\x1b[999;999R\x1b[I\x1b[O\x1bP>|evil\x1b\\\x1b[?2026;2$y"
TYPED = [*range(32, 127), 27, 27, 9, 8, 0, 1, 5, 0x9B]


def mouse(chance: random.Random) -> str:
    spots = [(chance.choice((32, 35, 35, 35, 64)), chance.randrange(1, 100)) for _ in range(20_000)]
    return "".join(f"\x1b[<{button};{x};{1 + x % 28}M" for button, x in spots)


@attacks(
    Attack(
        "mouse_noise",
        "20,000 reports of a mouse that flies about",
        "It goes on and answers keys",
        fell="each was handled by itself, for a minute",
        slow=True,
        value=mouse,
    ),
    Attack(
        "key_noise",
        "3 KB of random bytes as keys: controls, escapes, halves of UTF-8",
        "It goes on, or ends in good order",
        slow=True,
        value=lambda chance: "".join(chr(chance.choice(TYPED)) for _ in range(3_000)),
    ),
    Attack(
        "answers_forged",
        "Answers of a terminal that nobody asked: colours, versions, positions, focus",
        "It goes on and answers keys",
        slow=True,
        value=lambda _: ANSWERS * 200,
    ),
    Attack(
        "unfinished",
        "An escape sequence of 100 KB that never ends",
        "It is dropped; keys are answered",
        fell="it was typed into the prompt, character by character",
        slow=True,
        value=lambda _: "\x1b]52;c;" + "A" * 100_000,
    ),
)
def test_noise(row: Attack, start: Start) -> None:
    terminal = start(*NOWHERE)
    terminal.shows("F1 help")
    noise = row.value(random.Random(5))
    for at in range(0, len(noise), 4_096):
        terminal.send(noise[at : at + 4_096])
    terminal.send("\x1b\\\x1b[201~")
    begun = time.monotonic()
    terminal.resize(90, 28)
    if row.name != "key_noise":
        terminal.send("still-there")
        terminal.shows("still-there")
    else:
        terminal.until(lambda: ended(terminal) or "─" in terminal.picture)
    assert b"Traceback" not in terminal.output
    assert time.monotonic() - begun < 60


@attack(
    "Sizes from 1×1 to 500×200 in a storm while a run goes on, then 20×5",
    "It goes on; at 20×5 a question is on the screen or nothing can be accepted",
    fell="it crashed at four columns",
    slow=True,
)
def test_storm_of_sizes(start: Start) -> None:
    terminal = start(*DEMO, size=(4, 10))
    terminal.until(lambda: b"\x1b[?2004h" in terminal.output)
    chance = random.Random(3)
    for _ in range(150):
        terminal.resize(chance.choice((1, 2, 4, 20, 80, 500)), chance.choice((1, 2, 5, 24, 200)))
    terminal.resize(100, 30)
    terminal.shows("F1 help")


@attacks(
    Attack(
        "dumb_terminal",
        "TERM=dumb",
        "Lines instead, and no control sequence",
        value={"TERM": "dumb"},
    ),
    Attack(
        "no_term",
        "TERM empty",
        "It runs, or is refused in words",
        slow=True,
        value={"TERM": ""},
    ),
    Attack(
        "c_locale",
        "LC_ALL=C, PYTHONUTF8=0",
        "It runs",
        slow=True,
        value={"LC_ALL": "C", "PYTHONUTF8": "0"},
    ),
    Attack(
        "missing_locale",
        "A locale that is not there",
        "It runs",
        slow=True,
        value={"LC_ALL": "xx_YY.latin7", "LANG": "xx"},
    ),
    Attack(
        "columns_lie",
        "COLUMNS and LINES of minus one and of 10,000",
        "It runs",
        slow=True,
        value={"COLUMNS": "-1", "LINES": "10000"},
    ),
    Attack(
        "home_missing",
        "A HOME that is not there",
        "It runs, or says what is missing",
        slow=True,
        value={"HOME": "/nowhere/at/all"},
    ),
)
def test_poor_terminals(row: Attack, start: Start) -> None:
    terminal = start(*NOWHERE, **row.value)
    if row.name == "dumb_terminal":
        terminal.until(lambda: b"> " in terminal.output)
        terminal.send("/quit\n")
        assert terminal.code() == 0
        assert b"\x1b" not in terminal.output
        return
    terminal.until(lambda: ended(terminal) or b"\x1b[?2004h" in terminal.output)
    assert b"Traceback" not in terminal.output
    if not ended(terminal):
        leave(terminal)


@attacks(
    Attack(
        "hang_up",
        "The terminal goes away while it waits",
        "The program ends within seconds",
        slow=True,
        value=False,
    ),
    Attack(
        "hang_up_busy",
        "The terminal goes away while a paste of 200 KB comes in",
        "The program ends within seconds",
        fell="it went on for half an hour",
        slow=True,
        value=True,
    ),
)
def test_hang_up(row: Attack, start: Start) -> None:
    terminal = start(*NOWHERE)
    terminal.shows("F1 help")
    if row.value:
        terminal.send("\x1b[200~" + "word " * 40_000)
    terminal.hang_up()
    terminal.code()


LEFT_ON = "five of them left the alternate screen on"


@attacks(
    *(
        Attack(
            f"signal_{name.lower()}",
            f"{name} while it runs, five times",
            "The terminal is given back, the session is whole",
            fell=LEFT_ON if name == "SIGINT" else "",
            slow=True,
            value=getattr(signal, name),
        )
        for name in ("SIGTERM", "SIGHUP", "SIGINT")
    )
)
def test_signals_to_the_console(row: Attack, start: Start) -> None:
    terminal = start(*DEMO)
    terminal.shows("F1 help")
    for _ in range(5):
        if not ended(terminal):
            os.kill(terminal.pid, row.value)
            terminal.until(lambda: ended(terminal) or not waits(terminal.pid, row.value))
    terminal.code()
    assert b"Traceback" not in terminal.output
    entered, left = terminal.output.rfind(b"\x1b[?1049h"), terminal.output.rfind(b"\x1b[?1049l")
    assert left > entered


@attack(
    "An idle console for three seconds",
    "Less than half a second of processor time, no file descriptor more",
    slow=True,
)
def test_idle(start: Start) -> None:
    terminal = start(*NOWHERE)
    terminal.shows("F1 help")
    load_is_over(terminal)
    before, handles = processor(terminal.pid), len(list(Path(f"/proc/{terminal.pid}/fd").iterdir()))
    time.sleep(3)
    assert processor(terminal.pid) - before < 0.5
    assert len(list(Path(f"/proc/{terminal.pid}/fd").iterdir())) <= handles
    leave(terminal)
