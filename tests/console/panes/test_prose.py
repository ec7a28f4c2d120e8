"""A reply's Markdown: drawn as it grows, the same in the end, never wider than its column."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tui_agent.console.panes import prose as prose_module
from tui_agent.console.panes.ink import text_of, width_of, wrap
from tui_agent.console.panes.prose import CHUNK, Prose, inline
from tui_agent.console.sanitize import is_safe

MARKDOWN = st.lists(
    st.sampled_from(
        [
            "# Title\n",
            "## Sub `code`\n",
            "- item **bold** and *slanted*\n",
            "  1. nested\n",
            "> quoted\n",
            "---\n",
            "\n",
            "```python\ndef f(x):\n    return 'a'  # b\n```\n",
            "```\nopen fence\n",
            "```\n",
            "~~~\n",
            "| a | b |\n",
            "|---|---|\n",
            "| 1 | 日本 |\n",
            "plain words that go on for a good while, so that they wrap more than once in a narrow column\n",
            "x" * 150,
            "日本語の文" * 30,
            "\x1b[31mred\x1b[0m\tt\r\n",
            "**not closed `",
            "[label](http://example.org/x)",
            "end",
            "    code\n",
        ]
    ),
    max_size=25,
).map("".join)


@settings(deadline=None)
@given(text=MARKDOWN, cuts=st.lists(st.integers(0, 400), max_size=12), width=st.integers(4, 100))
def test_a_text_that_comes_in_pieces_is_drawn_as_if_it_had_come_at_once(
    text: str, cuts: list[int], width: int
) -> None:
    pieces, whole = Prose(width), Prose(width)
    for cut in sorted(cuts):
        pieces.feed(text[:cut])
        assert all(width_of(line) <= width for line in pieces.lines)
    assert pieces.finish(text) == whole.finish(text)


@settings(deadline=None)
@given(text=MARKDOWN, width=st.integers(4, 100))
def test_lines_fit_and_are_safe(text: str, width: int) -> None:
    for line in Prose(width).finish(text):
        assert width_of(line) <= width
        assert is_safe(text_of(line))


@settings(deadline=None)
@given(text=MARKDOWN, width=st.integers(8, 100))
def test_what_is_settled_keeps_its_words_while_the_text_goes_on(text: str, width: int) -> None:
    prose = Prose(width)
    before: list[str] = []
    for end in range(0, len(text), 17):
        prose.feed(text[:end])
        now = [text_of(line) for line in prose.lines]
        assert now[: len(before)] == before
        before = now[: prose.settled]


@settings(deadline=None)
@given(text=st.text(alphabet="abc 日\n", max_size=300), width=st.integers(1, 40))
def test_wrapping_loses_no_word_and_keeps_to_the_width(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(cell_len(line) <= max(2, width) for line in lines)


def test_a_paragraph_without_end_is_drawn_in_linear_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply of 100,000 characters without a line feed, in 1,250 pieces: each character is wrapped a few times."""
    work = 0
    wrapped = prose_module.wrap_spans

    def counting(spans: list, width: int, later: int | None = None) -> list:
        nonlocal work
        spans = list(spans)
        work += sum(len(span.text) for span in spans)
        return wrapped(spans, width, later)

    monkeypatch.setattr(prose_module, "wrap_spans", counting)
    text = "word " * 20_000
    prose = Prose(80)
    for end in range(0, len(text), 80):
        prose.feed(text[:end])
    assert work < len(text) * (CHUNK // 80 + 2)
    lines = [text_of(line) for line in prose.finish(text)]
    assert " ".join(lines).split() == ["word"] * 20_000
    assert {len(line) for line in lines[:-1]} == {79}


def test_complete_lines_are_not_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = 0
    block = Prose._block

    def counting(self: Prose, line: str) -> list:
        nonlocal blocks
        blocks += 1
        return block(self, line)

    monkeypatch.setattr(Prose, "_block", counting)
    text = "a line of words\n" * 2_000
    prose = Prose(80)
    for end in range(0, len(text) + 1, 16):
        prose.feed(text[:end])
    assert blocks <= 2_000 + 5


def test_a_finished_fence_is_coloured_by_role_and_an_open_one_is_not() -> None:
    source = "```python\ndef f():\n    return 'x'\n"
    prose = Prose(40)
    prose.feed(source)
    assert {span.style for line in prose.lines for span in line} == {
        "faint on:code-background",
        "code on:code-background",
        "on:code-background",
    }
    prose.feed(source + "```\n")
    styles = {span.style for line in prose.lines for span in line}
    assert {"syntax-keyword on:code-background", "syntax-string on:code-background"} <= styles
    assert [text_of(line) for line in prose.lines] == ["▏ def f():", "▏     return 'x'"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("# Title #", ["Title"]),
        ("* one\n10. ten", ["• one", "10. ten"]),
        ("- a long item that wraps", ["• a long item", "  that wraps"]),
        ("> said", ["▎ said"]),
        ("***", ["─" * 16]),
        ("a\n\n\n\nb", ["a", "", "b"]),
        ("see [docs](http://x.y)", ["see docs", "(http://x.y)"]),
        ("| a | b |\n|:-:|---|\n| 1 | 22 |", ["a │ b ", "──┼───", "1 │ 22"]),
        ("```\n\n  indented\n```", ["▏ ", "▏   indented"]),
        ("2 * 3 * 4 and a_b_c", ["2 * 3 * 4 and", "a_b_c"]),
        ("#hashtag", ["#hashtag"]),
    ],
)
def test_blocks(text: str, lines: list[str]) -> None:
    assert [text_of(line) for line in Prose(16).finish(text)] == lines


def test_emphasis_becomes_style_and_its_signs_go() -> None:
    assert [tuple(span) for span in inline("a **b `c`** *d* ~~e~~")] == [
        ("a ", ""),
        ("b ", "bold"),
        ("c", "bold code-inline on:code-background"),
        (" ", ""),
        ("d", "italic"),
        (" ", ""),
        ("e", "strike"),
    ]
