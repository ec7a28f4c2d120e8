"""Long outputs: both ends for the model, the whole in a file, memory bounded whatever comes."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.tools.output import Capture, decode_output, join_cut


def test_a_cut_text_says_how_much_is_missing_and_where_it_lies() -> None:
    text = "".join(f"line {number}\n" for number in range(1_000))
    cut = join_cut(text[:100], text[-100:], len(text), "/out/file.txt")
    head, marker, tail = (
        cut.partition("[...")[0],
        cut.split("[...")[1].split("...]")[0],
        cut.partition("...]\n")[2],
    )
    assert text.startswith(head)
    assert text.endswith(tail)
    assert head.endswith("\n")
    assert tail.startswith("line ")
    missing = len(text) - len(head) - len(tail)
    assert f"{missing:,} of {len(text):,} characters left out" in marker
    assert "/out/file.txt" in marker


@given(st.text(max_size=500), st.integers(10, 200))
def test_both_ends_of_a_cut_text_are_the_texts_own(text: str, limit: int) -> None:
    cut = join_cut(text[: limit // 2], text[-(limit // 2) :], len(text))
    head, _, rest = cut.partition("[... ")
    tail = rest.partition(" ...]\n")[2]
    if "[... " not in text:
        assert text.startswith(head.removesuffix("\n"))
        assert text.endswith(tail)


@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
def test_what_is_kept_does_not_depend_on_how_it_came(tmp_path: Path, size: int) -> None:
    data = "".join(f"{number} ä\n" for number in range(5_000)).encode()
    capture = Capture(tmp_path, "bash", 1_000)
    for start in range(0, len(data), size):
        capture.feed(data[start : start + size])
    text, whole = capture.finish()
    assert Path(whole).read_bytes() == data
    assert text.startswith("0 ä\n1 ä\n")
    assert text.endswith("4999 ä\n")
    assert len(text) < 1_300
    assert [path.name for path in tmp_path.iterdir()] == [Path(whole).name]


def test_a_text_of_many_bytes_and_few_characters_is_not_cut(tmp_path: Path) -> None:
    capture = Capture(tmp_path, "bash", 100)
    capture.feed("é".encode() * 100)
    assert capture.finish() == ("é" * 100, "")
    assert list(tmp_path.iterdir()) == []


def kept(text: str, folder: Path, prefix: str) -> tuple[str, str]:
    capture = Capture(folder, prefix, 100)
    capture.feed(text.encode())
    return capture.finish()


def test_the_same_output_is_kept_under_the_same_name(tmp_path: Path) -> None:
    first, second = (kept("x\n" * 500, tmp_path, "bash") for _ in range(2))
    assert first == second
    assert kept("y\n" * 500, tmp_path, "bash")[1] != first[1]


def test_what_is_given_up_leaves_no_file(tmp_path: Path) -> None:
    capture = Capture(tmp_path, "bash", 10)
    capture.feed(b"x" * 1_000)
    capture.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_costs_the_file_and_says_so(tmp_path: Path) -> None:
    capture = Capture(tmp_path, "bash", 100)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        for _ in range(100):
            capture.feed(b"a" * 10_000)
        text, whole = capture.finish()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert whole == ""
    assert "could not be kept: File too large" in text
    assert text.startswith("a" * 50)
    assert list(tmp_path.iterdir()) == []


def test_a_prefix_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    whole = kept("x" * 500, tmp_path, "../../evil")[1]
    assert Path(whole).parent == tmp_path


@given(st.binary(max_size=300))
def test_any_output_is_text_that_can_be_stored(data: bytes) -> None:
    decode_output(data).encode("utf-8")
