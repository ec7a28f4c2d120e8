"""The block that still comes in: drawn as Markdown at each moment, at a bounded cost, and it moves little."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.console.panes import prose as prose_module
from tui_agent.console.panes.growing import HELD
from tui_agent.console.panes.markdown import draw_markdown
from tui_agent.console.panes.prose import GROWING, PARSED, Prose
from tui_agent.frontend.lines.styled import Line, text_of, width_of
from tui_agent.terminal_text import is_safe

PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                *("*", "**", "_", "__", "~~", "`", "``", "```", "~~~", "\\", "[", "](", ")", "!", "!["),
                *("http://x.y", "| a |", "|", "|---|", "---", "===", "- ", "  - ", "1. ", "> ", "# ", ":"),
                *("\n", "\n\n", "    ", "\t", "&amp;", "<http://", "```py\n", "def f(): 'x'\n", "word "),
                *("\x1b[1m", "日本", "\u2028", "\r\n", "diff --git a b\n", "+x\n", "many words " * 20),
                *("x" * 300, "- an item\n" * 60, "| a | b |\n|---|---|\n", "| **c** | d |\n" * 30),
            ]
        ),
        st.text(max_size=5),
    ),
    max_size=40,
).map("".join)


@given(text=PIECES, steps=st.lists(st.integers(1, 60), min_size=1, max_size=20), width=st.integers(4, 100))
def test_each_moment_looks_the_same_however_the_text_came_and_what_is_settled_stays(
    text: str, steps: list[int], width: int
) -> None:
    pieces = Prose(width)
    end, settled = 0, list[Line]()
    for number in range(20):
        end += steps[number % len(steps)]
        pieces.feed(text[:end])
        whole = Prose(width)
        whole.feed(text[:end])
        lines = pieces.lines
        assert lines == whole.lines == [pieces[at] for at in range(len(pieces))]
        assert lines[: len(settled)] == settled
        assert all(width_of(line) <= width and is_safe(text_of(line)) for line in lines)
        settled = lines[: pieces.settled]
    assert pieces.finish(text) == Prose(width).finish(text)


def test_a_line_separator_after_indentation_is_an_end_of_a_line_before_that_line_is_complete() -> None:
    """U+2028 ends a line of a source line, so what follows the first may yet be the beginning of a block."""
    text = "# a\n\n    \u2028b"
    pieces, whole = Prose(40), Prose(40)
    for end in range(len(text) + 1):
        pieces.feed(text[:end])
    whole.feed(text + "\nc")
    pieces.feed(text + "\nc")
    assert pieces.lines == whole.lines
    assert pieces.finish(text + "\nc") == Prose(40).finish(text + "\nc")


REPLY = """# What was found

The **parser** reads `one token` and *then* goes on: see [the docs](http://x.y/z) for ~~more~~ all of it,
a second line with a **mark that
is closed** on the next.

- item **one** with `code`
- item two
  1. nested *words* here
  2. and more of them

> quoted `text` that goes on

* * *

```python
def f(x):
    return "a ``` b"
```

![a picture](http://x.y/p.png) stands here. Hello! All *.py and 2 * 3, a[0] and [x].

## Done
"""


@pytest.mark.parametrize("width", [24, 60, 100])
def test_letter_by_letter_no_line_above_the_last_moves_and_no_word_is_taken_back(width: int) -> None:
    prose = Prose(width)
    before: list[str] = []
    for end in range(len(REPLY)):
        prose.feed(REPLY[:end])
        now = [text_of(line).rstrip() for line in prose.lines]
        assert now[: len(before) - 1] == before[:-1]
        if len(now) == len(before) > 0:
            assert now[-1].startswith(before[-1].removesuffix(")"))
        before = now


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a **bo", [("a ", ""), ("bo", "bold")]),
        ("a **bold*", [("a ", ""), ("bold", "bold")]),
        ("a **bold *and", [("a ", ""), ("bold ", "bold"), ("and", "bold italic")]),
        ("***both", [("both", "italic bold")]),
        ("a `", [("a", "")]),
        ("a `co", [("a ", ""), ("co", "code-inline on:code-background")]),
        ("**a `co", [("a ", "bold"), ("co", "bold code-inline on:code-background")]),
        ("~~ol", [("ol", "strike")]),
        ("see [te", [("see te", "")]),
        ("see [text](", [("see text", "")]),
        ("see [text](htt", [("see ", ""), ("text", "underline"), (" (htt)", "muted")]),
        ('see [text](http://x.y "ti', [("see ", ""), ("text", "underline"), (" (http://x.y)", "muted")]),
        ("![al", [("al", "")]),
        ("a[0", [("a[0", "")]),
        ("2 * 3 and all *.py files", [("2 * 3 and all *.py files", "")]),
        ("5*3 and snake_case", [("5*3 and snake_case", "")]),
        ("a *stray\nand on", [("a *stray", "")]),
        ("a `stray\nand on", [("a `stray", "")]),
        ("a **mark that\ngoes", [("a ", ""), ("mark that", "bold")]),
    ],
)
def test_a_mark_at_the_end_is_drawn_as_if_it_were_closed_or_kept_back(
    text: str, shown: list[tuple[str, str]]
) -> None:
    prose = Prose(60)
    prose.feed(text)
    spans = [(span.text, span.style) for span in prose[0]]
    assert [(t.rstrip() if at == len(spans) - 1 else t, s) for at, (t, s) in enumerate(spans) if t] == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Title\n--", ["Title"]),
        ("Title\n=", ["Title"]),
        ("a\n\n#", ["a", ""]),
        ("a\n-", ["a"]),
        ("a\n- [", ["a", "• "]),
        ("a\n12.", ["a"]),
        ("a\n``", ["a"]),
        ("a\n```pyth", ["a"]),
        ("```python\n", []),
        ("```\nx\n``", ["▏ x"]),
        ("> ", []),
        ("---", []),
        ("| na", []),
        ("| name |", ["name", "────"]),
        ("| name | w", ["name", "────"]),
        ("| name | what |\n", ["name │ what", "─────┼─────"]),
        ("| name | what |\n|--", ["name │ what", "─────┼─────"]),
        ("| name | what |\n|---|---|\n| a", ["name │ what", "─────┼─────"]),
        ("| name | what |\n|---|---|\n| a | b", ["name │ what", "─────┼─────", "a    │"]),
    ],
)
def test_a_line_that_may_become_something_else_is_kept_back(text: str, shown: list[str]) -> None:
    prose = Prose(40)
    prose.feed(text)
    assert [
        text_of(line).rstrip() if "│" in text_of(line) else text_of(line) for line in prose.lines
    ] == shown


def test_of_a_cell_that_goes_on_only_the_last_letters_are_kept_back() -> None:
    prose = Prose(200)
    cell = "word " * 30
    text = f"| a |\n|---|\n| {cell}"
    prose.feed(text)
    shown = text_of(prose.lines[-1]).strip()
    assert cell.startswith(shown)
    assert len(cell) - len(shown) <= HELD + len("word ")


HOSTILE = [
    *("[", "![", "[a](", "*a **b ", "**_a_ ", "a*", "` a", "&", "<a ", "~~a ", "|a", "|\n", "| a | b |\n"),
    *("  - x\n", "> > a\n", "word ", "- item\n", "    code\n", "1. a\n   - b\n", "\\", "a\n"),
]


@pytest.mark.parametrize(
    "start",
    [
        "",
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in ("```python\n", "| a | b |\n|---|---|\n", "- a\n")
        ),
    ],
)
@pytest.mark.parametrize("unit", HOSTILE)
def test_a_text_is_parsed_at_most_once_each_time_and_a_bounded_part_of_it(
    unit: str, start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[int] = []

    def counting(source: str, width: int, *, growing: bool = False) -> list[Line]:
        if growing:
            parsed.append(len(source))
        return draw_markdown(source, width, growing=growing)

    monkeypatch.setattr(prose_module, "draw_markdown", counting)
    text = start + unit * (12_000 // len(unit))
    prose = Prose(80)
    total = feeds = 0
    for end in range(0, len(text), 160):
        parsed.clear()
        prose.feed(text[:end])
        feeds += 1
        total += sum(parsed)
        assert len(parsed) <= 1
        assert sum(parsed) <= PARSED
        prose.feed(text[:end])
        assert len(parsed) <= 1
    assert total <= 2 * GROWING * feeds


def test_code_beyond_the_bound_keeps_its_colours_and_goes_on_without() -> None:
    code = "".join(f"name_{number} = 'a value'\n" for number in range(2_000))
    prose = Prose(60)
    prose.feed(f"```python\n{code[:5_000]}")
    coloured = prose.lines[:40]
    assert any("syntax-string" in span.style for span in coloured[39])
    prose.feed(f"```python\n{code[:15_000]}")
    assert prose.lines[:40] == coloured
    shown = [text_of(line).rstrip() for line in prose.lines]
    assert shown == [f"▏ {line}".rstrip() for line in code[:15_000].split("\n")]
    assert not any("syntax" in span.style for span in prose.lines[-2])
    before = prose.lines
    prose.feed(f"```python\n{code[:15_000]}\n``")
    assert prose.lines == before


def test_marks_without_end_within_each_other_do_not_break_the_drawing() -> None:
    nested = "*a " * 500 + "b*" + " b*" * 499
    prose = Prose(80)
    for end in range(0, len(nested), 50):
        prose.feed(nested[:end])
    assert prose.lines
