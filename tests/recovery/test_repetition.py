"""Repetition within a reply: what is cut while it streams, and what may go on."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.core.recovery.repetition import RepetitionWatch, repeated, without_repetition


def noticed(text: str, size: int = 5) -> int:
    """After how many characters, in pieces of `size`, the text is seen to repeat itself; 0: never."""
    watch = RepetitionWatch()
    for place in range(0, len(text), size):
        if watch.add(text[place : place + size]):
            return place + size
    return 0


LOOPS = {
    "a sentence": "I look at the whole first. " + "I will now read the file. " * 400,
    "a line": "- the tests pass\n" * 500,
    "a word": "the " * 2_000,
    "a paragraph": (
        "This is a longer paragraph of a model that lost its thread, with two sentences. " * 6 + "\n\n"
    )
    * 12,
    "a mark": "So:\n" + "!" * 16_000,
    "a line of code in a fence": "```python\n" + "    total = total + 1\n" * 1_000,
}


@pytest.mark.parametrize("text", LOOPS.values(), ids=LOOPS)
def test_a_loop_is_seen_before_it_goes_on_for_long(text: str) -> None:
    assert 0 < noticed(text) <= 14_000


ROWS = "".join(f"| {n} | {n * n} | the square of {n} |\n" for n in range(2_000))
ORDINARY = {
    "a table": ROWS,
    "a list of like lines": "".join(f"- tests/test_{n}.py passes\n" for n in range(2_000)),
    "a hex dump": "```\n" + "".join(f"{n:08x}: 0000 0000 0000 0000  ................\n" for n in range(600)),
    "rows of zeros in a fence": "```\n" + "0, 0, 0, 0, 0, 0, 0, 0,\n" * 300,
    "ascii art": ("+" + "-" * 70 + "+\n" + ("|" + " " * 70 + "|\n") * 20) * 4,
    "rulers": ("=" * 100 + "\nTitle\n") * 20,
    "a line said twenty times because it was asked for": "I will not talk in class.\n" * 20,
    "lock files": "".join(f'{{file = "p-{n}.whl", hash = "sha256:{n:064x}"}},\n' for n in range(300)),
}


@pytest.mark.parametrize("text", ORDINARY.values(), ids=ORDINARY)
def test_ordinary_text_is_not_cut(text: str) -> None:
    assert noticed(text) == 0


def test_no_source_file_of_ours_is_cut() -> None:
    root = Path(__file__).resolve().parents[2]
    files = [*root.glob("tui_agent/**/*.py"), *root.glob("docs/*.md"), *root.glob("tests/cases/*.toml")]
    cut = [path.name for path in files if path.name != "form.toml" and noticed(path.read_text("utf-8"), 50)]
    assert len(files) > 100
    assert cut == []


def test_what_repeated_stands_there_once() -> None:
    text = "First this. " + "Then that. " * 400
    assert without_repetition(text) in {"First this. Then that. ", "First this. T" + "hen that. T"}
    assert without_repetition("Nothing of the kind.") == "Nothing of the kind."


def test_at_the_end_of_a_cut_reply_little_is_enough() -> None:
    text = "Let me see. " + "I will check the file now. " * 20
    assert repeated(text, cut=True)
    assert not repeated(text)
    assert not repeated("- a\n- b\n- c\n" * 3, cut=True)


@given(st.text(max_size=400), st.integers(1, 50))
def test_any_text_in_any_pieces_is_taken(text: str, size: int) -> None:
    assert noticed(text, size) == 0


def test_a_check_costs_little() -> None:
    text = "".join(f"{n} green bottles hang on the wall. " for n in range(30_000))
    began = time.process_time()
    assert noticed(text, 8) == 0
    assert time.process_time() - began < 5.0, "a million characters"
