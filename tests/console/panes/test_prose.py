"""A reply's Markdown: drawn as it grows, the same in the end, never wider than its column."""

from __future__ import annotations

import subprocess
import sys
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tui_agent.console.panes import prose as prose_module
from tui_agent.console.panes.markdown import draw_markdown
from tui_agent.console.panes.prose import CHUNK, PARSED, Prose
from tui_agent.frontend.lines.styled import text_of, width_of, wrap
from tui_agent.terminal_text import is_safe

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
            "|---|---:|\n",
            "| 1 | 日本 |\n",
            "plain words that go on for a good while, so that they wrap more than once in a narrow column\n",
            "x" * 150,
            "日本語の文" * 30,
            "\x1b[31mred\x1b[0m\tt\r\n",
            "**not closed `",
            "[label](http://example.org/x)",
            "end",
            "    code\n",
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n",
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


def test_a_table_that_is_too_wide_breaks_at_words_where_that_makes_room() -> None:
    lines = Prose(24).finish("| month | total |\n|---|---:|\n| October of 2026 | 1,204,118.20 of all € |\n")
    assert [text_of(line).rstrip() for line in lines if line] == [
        "month     │        total",
        "──────────┼─────────────",
        "October   │ 1,204,118.20",
        "of 2026   │     of all €",
    ]


def test_a_column_marked_so_stands_at_its_right_edge() -> None:
    lines = Prose(40).finish("| name | count |\n|---|---:|\n| a | 1 |\n| bb | 1234567 |\n")
    assert [text_of(line).rstrip() for line in lines if line] == [
        "name │   count",
        "─────┼────────",
        "a    │       1",
        "bb   │ 1234567",
    ]


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


@pytest.mark.parametrize(
    "unit",
    ["a line of words\n", "- an item of a list\n", "| a | b |\n", "> said\n", "    code\n", "word\n\n"],
)
def test_every_source_line_is_wrapped_and_parsed_whole_a_bounded_number_of_times(
    unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapped = parsed = 0
    wrap_spans, draw = prose_module.wrap_spans, prose_module.draw_markdown

    def counting(spans: list, width: int, later: int | None = None) -> list:
        nonlocal wrapped
        wrapped += 1
        return wrap_spans(spans, width, later)

    def counting_parse(source: str, width: int, *, growing: bool = False) -> list:
        nonlocal parsed
        parsed += 0 if growing else len(source)
        return draw(source, width, growing=growing)

    monkeypatch.setattr(prose_module, "wrap_spans", counting)
    monkeypatch.setattr(prose_module, "draw_markdown", counting_parse)
    number = 2 * PARSED // len(unit)
    text = unit * number
    prose = Prose(80)
    for end in range(0, len(text) + 1, 48):
        prose.feed(text[:end])
    prose.finish(text)
    assert wrapped <= 2 * (len(text) // 48 + number)
    assert parsed <= len(text)


@pytest.mark.parametrize(
    "unit", ["[", "*a **b ", "![[", "> ", "` ", "- ", "_a ", "[a](", "&", "(((", "\\", "<a "]
)
def test_hostile_markdown_costs_little_and_loses_no_word(unit: str) -> None:
    text = (unit * PARSED)[: PARSED - 100] + " end"
    prose = Prose(80)
    start = process_time()
    lines = prose.finish(text)
    assert process_time() - start < 2
    assert "end" in text_of(lines[-1])


def test_marks_within_each_other_without_end_are_text() -> None:
    nested = "*a " * 500 + "b*" + " b*" * 499
    assert text_of(Prose(80).finish(nested)[0]).startswith("*a *a")


def test_a_fence_is_coloured_by_role_while_it_is_open() -> None:
    source = "```python\ndef f():\n    return 'x"
    open_fence = Prose(40)
    open_fence.feed(source)
    coloured = {"syntax-keyword on:code-background", "syntax-string on:code-background"}
    assert coloured <= {span.style for line in open_fence.lines for span in line}
    open_fence.feed(f"{source}'\n")
    before = open_fence.lines
    open_fence.feed(f"{source}'\n```\n")
    assert open_fence.lines == before
    assert [text_of(line) for line in before] == ["▏ def f():", "▏     return 'x'"]


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
    (line,) = draw_markdown("a **b `c`** *d* ~~e~~", 40)
    assert [tuple(span) for span in line] == [
        ("a ", ""),
        ("b ", "bold"),
        ("c", "bold code-inline on:code-background"),
        (" ", ""),
        ("d", "italic"),
        (" ", ""),
        ("e", "strike"),
    ]


def test_lists_quotes_and_code_keep_their_place_in_each_other() -> None:
    source = "- one\n  1. nested **x**\n\n     more\n- two\n\n> said\n> - *what*\n\n1. run\n   ```\n   make\n   ```\n"
    assert [text_of(line) for line in Prose(30).finish(source)] == [
        "• one",
        "  1. nested x",
        "",
        "     more",
        "• two",
        "",
        "▎ said",
        "▎ • what",
        "",
        "1. run",
        "   ▏ make",
    ]


def test_a_patch_without_a_fence_keeps_its_signs_and_ends_where_words_follow() -> None:
    patch = [
        *("diff --git a/x.py b/x.py", "index 1..2 100644", "--- a/x.py", "+++ b/x.py", "@@ -1,3 +1,3 @@")
    ]
    patch += [" keep", "", "-    old", "+    new"]
    lines = [text_of(line) for line in Prose(60).finish("\n".join(["The patch:", *patch, "Two `words`."]))]
    assert lines == ["The patch:", *(f"▏ {line}".rstrip() + " " * (not line) for line in patch), "Two words."]


def test_a_diff_is_coloured_by_what_it_adds_and_removes() -> None:
    lines = Prose(30).finish("```diff\n-old\n+new\n```")
    styles = {text_of(line): [span.style for span in line] for line in lines}
    assert "diff-remove on:code-background" in styles["▏ -old"]
    assert "diff-add on:code-background" in styles["▏ +new"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<b>x</b> <script>", "<b>x</b> <script>"),
        ("a &lt;b&gt; &#x202e;c &#27;[2J", "a <b> ‹U+202E›c \ufffd[2J"),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))"),
        ("![a](http://x.y/z)", "a (http://x.y/z)"),
        ("<http://x.y>", "http://x.y"),
        ("see www.x.y", "see www.x.y"),
        ("[1]: http://x.y", "[1]: http://x.y"),
    ],
)
def test_nothing_in_markdown_acts_or_hides(text: str, shown: str) -> None:
    assert [text_of(line) for line in Prose(60).finish(text)] == [shown]


def test_the_parser_is_imported_when_the_first_text_comes_in() -> None:
    code = (
        "import sys; from tui_agent.console.panes.prose import Prose; p = Prose(40); p.feed('')\n"
        "assert 'markdown_it' not in sys.modules; p.feed('a'); assert 'markdown_it' in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
