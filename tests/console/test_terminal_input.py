"""Bytes from the terminal: handled in the order in which they came, whatever the chunking, pastes whole."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.console.terminal import Terminal
from tui_agent.console.terminal import input as terminal_input
from tui_agent.console.terminal.input import InputParser

ANSWERING = """
title = "Answers"
task = "Say it."

[pace]
chars = [40, 40]
interval = 0.001
pause = 0.0

[[turns]]
text = "Heard."
repeat = 50
"""

PIECES = (
    "a",
    "é",
    "日",
    "\r",
    "\t",
    "\x7f",
    "\x1b\r",
    "\x1b[A",
    "\x1b[1;5D",
    "\x1bOP",
    "\x1b[13;2u",
    "\x1bf",
    "\x1b[Z",
    "\x1b[<0;3;4M",
    "\x1b]11;rgb:0/0/0\x1b\\",
    "\x1b[?2026;2$y",
    "\x1b[999~",
    "\x1b[200~one\rtwo\x1b[31m\x1b]0;x\x07three\r\n\x1b[201~",
    "\x1b[200~\x1b[201~",
)


def read(chunks: list[str]) -> list[tuple[str, str]]:
    parser = InputParser()
    return [
        (type(message).__name__, getattr(message, "key", "") or getattr(message, "text", ""))
        for chunk in chunks
        for message in parser.feed(chunk)
    ]


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.lists(st.integers(0, 200), max_size=12))
def test_where_the_input_is_cut_makes_no_difference(pieces: list[str], cuts: list[int]) -> None:
    whole = "".join(pieces)
    places = sorted({min(cut, len(whole)) for cut in cuts} | {0, len(whole)})
    chunks = [whole[start:end] for start, end in pairwise(places)]
    assert read(chunks) == read([whole]) == read(list(whole))


@pytest.mark.parametrize(
    ("sequence", "keys"),
    [
        ("ab\x1b\rc\r", ["a", "b", "alt+enter", "c", "enter"]),
        ("\x1bx\x1bf", ["alt+x", "ctrl+right"]),
        ("\x1b\x1b[A", ["alt+up"]),
        ("\x1b[999~\x1b]52;c;eA==\x07\x1bPx\x1b\\z", ["z"]),
        ("\x1b[M !!\x1b[201~q", ["q"]),
    ],
)
def test_sequences_are_keys_and_nothing_unknown_is_typed(sequence: str, keys: list[str]) -> None:
    assert [key for kind, key in read([sequence]) if kind == "Key"] == keys


@pytest.mark.parametrize(
    ("begun", "given_up"),
    [
        ("\x1b", ["escape"]),
        ("\x1b\x1b", ["escape", "escape"]),
        ("\x1b[", ["alt+left_square_bracket"]),
        ("\x1b[1;", []),
        ("\x1b[200~part", ["part"]),
    ],
)
def test_what_does_not_go_on_is_given_up_after_a_while(
    monkeypatch: pytest.MonkeyPatch, begun: str, given_up: list[str]
) -> None:
    now = 100.0
    monkeypatch.setattr(terminal_input, "monotonic", lambda: now)
    parser = InputParser()
    assert list(parser.feed(begun)) == list(parser.tick()) == []
    now += 10.0
    said = [getattr(message, "key", "") or getattr(message, "text", "") for message in parser.tick()]
    assert said == given_up


# --- in a terminal -------------------------------------------------------------------------------------------


def tasks(state: Path) -> list[str]:
    """What was sent, as the journal has it."""
    journal = next((state / "sessions").glob("*/events.jsonl"), None)
    lines = [] if journal is None else journal.read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines if line.endswith("}")]
    return [event["task"] for event in events if event["type"] == "run_started"]


@pytest.mark.process
def test_typing_alt_enter_and_pastes_arrive_as_they_were_given(
    start: Callable[..., Terminal], tmp_path: Path
) -> None:
    scenario = tmp_path / "answers.toml"
    scenario.write_text(ANSWERING)
    terminal = start("-m", "tui_agent", "--model", f"scripted:{scenario}", "--workspace", str(tmp_path))
    terminal.shows("READY")
    sent: list[str] = []

    def send(keys: str, text: str) -> None:
        terminal.send(keys + "\r")
        sent.append(text)
        terminal.until(lambda: tasks(tmp_path / "state") == sent)
        terminal.until(lambda: "DONE" in terminal.picture)

    words = " ".join(f"word{number}" for number in range(25))
    for character in words:  # 200 keys a second, and Enter right behind
        terminal.send(character)
        time.sleep(0.005)
    send("", words)
    send(words, words)
    send(
        "slip\x7fp\x1b[D\x1b[DX\x05 of a\x17the\x01>\x05.", ">slXip of the."
    )  # backspace, arrows, ^W, ^A, ^E
    send("forget this\x15but not this", "but not this")
    send("one\x1b\rtwo\x1b\r\x1b\rfour", "one\ntwo\n\nfour")
    for end in ("\r", "\n", "\r\n"):
        send(f"\x1b[200~a{end}\tb{end}{end}d\x1b[201~", "a\n\tb\n\nd")
    coloured = "\x1b[31mred\x1b[0m\r\x1b[Aup\x1b]0;title\x07\r"
    send(f"\x1b[200~{coloured}\x1b[201~after", coloured.replace("\r", "\n") + "after")
    lines = "\n".join(f"line {number} of a long paste" for number in range(5_000))
    send("see \x1b[200~" + lines.replace("\n", "\r") + "\x1b[201~ end", f"see {lines} end")
    big = "\n".join("\x1b[32mgreen\x1b[0m" * 10 for _ in range(11_000))
    assert len(big) > 1_000_000
    send(f"\x1b[200~{big}\x1b[201~", big)
    endless = "x" * 1_000_000
    send(f"\x1b[200~{endless}\x1b[201~", endless)
    terminal.send("\x11")
    assert terminal.code() == 0
