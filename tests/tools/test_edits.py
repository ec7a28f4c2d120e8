"""Edits that land although the white space is not quite right, several at once, and files that changed meanwhile."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.tools.box import Box
from tui_agent.tools.edits import EditError, Replacement, apply_edit, apply_edits
from tui_agent.tools.indentation import indented_alike
from tui_agent.tools.tool import ToolContext


@pytest.mark.parametrize(
    ("text", "old", "new", "after", "remark"),
    [
        ("a  \nb\n", "a\nb\n", "c\n", "c\n", "white space at line ends"),
        ("  a\n  b", "a\nb", "c\n  d", "  c\n    d", "indented to fit"),
        ("a\nb\n", "    a\n    b\n", "    a\n        c\n", "a\n    c\n", "indented to fit"),
        ("class A:\n\tdef f():\n\t\treturn 1\n", "def f():\n    return 1", "def f():\n    if x:\n        y\n    z",
         "class A:\n\tdef f():\n\t\tif x:\n\t\t\ty\n\t\tz\n", "indented to fit"),
        ("if a:\n    b\n", "if a:\n\tb", "if a:\n\tfor c:\n\t\td", "if a:\n    for c:\n        d\n", "indented to fit"),
        ("{\n    a: {\n        b\n    }\n}\n", "  a: {\n    b\n  }", "  a: {\n    b: {\n      c\n    }\n  }",
         "{\n    a: {\n        b: {\n            c\n        }\n    }\n}\n", "indented to fit"),
        ("\ta\n", "  a\n", "", "", "indented to fit"),
        ("x\n  a\n\n  b", "a\n\nb\n", "c\n\nd\n", "x\n  c\n\n  d", "indented to fit"),
        ("  a\r\n  b\r\nc\r\n", "a\nb", "d\ne", "  d\r\n  e\r\nc\r\n", "indented to fit"),
    ],
)  # fmt: skip
def test_white_space_that_differs_does_not_keep_an_edit_from_landing(
    text: str, old: str, new: str, after: str, remark: str
) -> None:
    edit = apply_edit(text, old, new)
    assert edit.text == after
    assert remark in edit.notice


def test_every_place_gets_the_indentation_that_it_has() -> None:
    text = "a(\n  1,\n)\n  a(\n    1,\n  )\n"
    edit = apply_edit(text, " a(\n   1,\n )", " a(\n   2,\n )", replace_all=True)
    assert (edit.text, edit.lines) == ("a(\n  2,\n)\n  a(\n    2,\n  )\n", (1, 4))


@pytest.mark.parametrize(
    ("new", "pairs"),
    [
        ("a\n    b", [("    ", "")]),  # `a` would stand before the line's beginning
        ("a\n      b", [("", ""), ("    ", "\t"), ("  ", "\t\t")]),
        ("\ta", [("", "        "), ("    ", "  ")]),
    ],
)
def test_an_indentation_that_cannot_be_told_is_not_guessed(new: str, pairs: list[tuple[str, str]]) -> None:
    assert indented_alike(new, pairs) is None


BLOCK = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abcdef")), min_size=1, max_size=6)


@given(BLOCK, BLOCK, st.integers(0, 3), st.integers(0, 3), st.sampled_from(["\t", "    ", "  "]))
def test_a_block_written_elsewhere_deeper_lands_as_if_written_in_place(
    before: list[tuple[int, str]], after: list[tuple[int, str]], deeper: int, written: int, unit: str
) -> None:
    assume(before != after)

    def block(lines: list[tuple[int, str]], level: int) -> str:
        return "".join(f"{unit * (level + depth)}{word}\n" for depth, word in lines)

    text = f"first\n{block(before, deeper)}last\n"
    assume(block(before, written) not in text)
    edit = apply_edit(text, block(before, written), block(after, written))
    assert edit.text == f"first\n{block(after, deeper)}last\n"


def test_several_edits_are_made_in_their_order_or_none_is() -> None:
    edit = apply_edits("a\nb\nc\n", [Replacement("a", "x"), Replacement("x\nb", "y"), Replacement("c", "z")])
    assert edit.text == "y\nz\n"
    with pytest.raises(EditError, match=r"edit 2 of 2 \(after the edits before it\): 'old' was not found"):
        apply_edits("a\nb\n", [Replacement("a", "x"), Replacement("qqqq", "y")])


async def test_one_call_makes_several_edits_or_changes_nothing(box: Box) -> None:
    file = box.put("f", "one\ntwo\nthree\n")
    output = await box.call(
        "edit_file",
        path="f",
        old="one",
        new="1",
        edits=[{"old": "two", "new": "2"}, {"old": "three", "new": "3"}],
    )
    assert (file.read_text(), output.content) == (
        "1\n2\n3\n",
        "Edited f: made 3 edits, 3 occurrences replaced.",
    )
    await box.call("edit_file", path="f", edits=[{"old": "1", "new": "one"}])
    error = await box.fail(
        "edit_file", path="f", edits=[{"old": "one", "new": "1"}, {"old": "nine", "new": "9"}]
    )
    assert "edit 2 of 2" in error.message
    assert file.read_text() == "one\n2\n3\n"


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", "c\nd\n", b"c\r\nd\r\n"),
        (b"a\r\nb\r\n", "c\r\nd\n", b"c\r\nd\n"),
        ("a\n".encode("utf-16"), "ö\n", "ö\n".encode("utf-16")),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
        ("zwölf\n".encode("latin-1"), "elf ü\n", "elf ü\n".encode("latin-1")),
        ("zwölf\n".encode("latin-1"), "10 €\n", "10 €\n".encode()),
        (b"\0\1", "text\n", b"text\n"),
    ],
)
async def test_a_replaced_file_keeps_its_encoding_and_line_ends(
    box: Box, before: bytes, content: str, after: bytes
) -> None:
    file = box.put("f", before)
    await box.call("write_file", path="f", content=content)
    assert file.read_bytes() == after


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("edit_file", {"old": "eins", "new": "zwei"}), ("write_file", {"content": "zwei"})],
)
async def test_a_file_that_changed_since_it_was_read_is_not_changed(
    box: Box, tool: str, arguments: dict[str, str]
) -> None:
    file = box.put("f", "eins\n")
    read = await box.call("read_file", path="f")
    file.write_text("eins, by somebody else\n")
    error = await box.fail(tool, known=read.files, path="f", **arguments)
    assert "'f' changed since you read it; read it again" in error.message
    assert file.read_text() == "eins, by somebody else\n"
    again = await box.call("read_file", path="f")
    written = await box.call(tool, known=again.files, path="f", **arguments)
    assert written.files != again.files
    await box.call("edit_file", known=written.files, path="f", old="zwei", new="drei")
    file.unlink()
    await box.call("write_file", known=written.files, path="f", content="new")


async def test_a_file_that_was_never_read_may_be_edited(box: Box) -> None:
    file = box.put("f", "eins\n")
    assert ToolContext(box.workspace, box.output_dir, "1", print).known_files == {}
    await box.call("edit_file", path="f", old="eins", new="zwei")
    assert file.read_text() == "zwei\n"
