"""Reading, writing and editing: what the model gets, what changes on disk, and what an error tells it."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.box import Box
from tui_agent.tools.diffs import bounded_diff, split_lines, unified_diff
from tui_agent.tools.edits import EditError, apply_edit
from tui_agent.tools.encoding import SAMPLE, BinaryContentError, detect, printable
from tui_agent.tools.workspace import Workspace

# --- reading -------------------------------------------------------------------------------------------------


async def test_a_file_is_read_with_line_numbers(box: Box) -> None:
    box.put("a.py", "def f():\n\treturn 1\n")
    assert (await box.call("read_file", path="a.py")).content == "     1\tdef f():\n     2\t\treturn 1"


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"a\r\nb\r\n", "     1\ta\n     2\tb"),
        (b"no end", "     1\tno end"),
        (b"\n\n", "     1\t\n     2\t"),
        (b"", "(f is empty)"),
        (b"\xef\xbb\xbfmarked", "     1\tmarked"),
        ("zwölf\n".encode("utf-16"), "     1\tzwölf"),
        ("zwölf\n".encode("latin-1"), "     1\tzwölf"),
        ("zwölf ".encode() + b"\xff\n", "     1\tzwölf \ufffd"),
        (b"form\x0cfeed\x85\n", "     1\tform\x0cfeed\x85"),
        ("a\u2028b\n".encode(), "     1\ta\u2028b"),
    ],
)
async def test_encodings_and_line_ends_are_read_as_text(box: Box, content: bytes, shown: str) -> None:
    box.put("f", content)
    assert (await box.call("read_file", path="f")).content == shown


@pytest.mark.parametrize(
    ("arguments", "first", "last", "remark"),
    [
        ({}, "     1\tl 1", "  2000\tl 2000", "(lines 1-2000, of 5000; read on with offset=2001)"),
        ({"offset": 4_999}, "  4999\tl 4999", "  5000\tl 5000", "(lines 4999-5000, the end)"),
        (
            {"offset": 10, "limit": 2},
            "    10\tl 10",
            "    11\tl 11",
            "(lines 10-11, of 5000; read on with offset=12)",
        ),
        (
            {"offset": 5_000, "limit": 1},
            "  5000\tl 5000",
            "  5000\tl 5000",
            "(lines 5000-5000, the end)",
        ),
    ],
)
async def test_a_part_is_read_by_lines(
    box: Box, arguments: dict[str, int], first: str, last: str, remark: str
) -> None:
    box.put("long", "".join(f"l {number}\n" for number in range(1, 5_001)))
    lines = (await box.call("read_file", path="long", **arguments)).content.split("\n")
    assert (lines[0], lines[-2], lines[-1]) == (first, last, remark)


async def test_reading_on_by_the_offsets_that_are_told_gives_every_line_once(box: Box) -> None:
    box.put("long", "".join(f"{'x' * (number % 90)} {number}\n" for number in range(1, 4_001)))
    seen: list[int] = []
    offset: int | None = 1
    while offset is not None:
        lines = (await box.call("read_file", path="long", offset=offset)).content.split("\n")
        seen += [int(line.partition("\t")[0]) for line in lines if "\t" in line]
        given = lines[-1].partition("offset=")[2].rstrip(")")
        offset = int(given) if given else None
    assert seen == list(range(1, 4_001))


async def test_a_long_line_is_cut_and_says_by_how_much(box: Box) -> None:
    box.put("min.js", "x" * 1_000_000 + "\nnext\n")
    content = (await box.call("read_file", path="min.js")).content
    assert len(content) < 3_000
    assert "[... 998,000 more characters in this line]" in content
    assert content.endswith("     2\tnext")


async def test_a_huge_file_is_read_without_being_loaded(box: Box) -> None:
    import tracemalloc

    with box.put("huge", b"start\n").open("r+b") as stream:
        stream.truncate(0)
        for _ in range(100):
            stream.write(b"0123456789abcde\n" * 65_536)
    tracemalloc.start()
    content = (await box.call("read_file", path="huge", offset=20_000, limit=3)).content
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert content.startswith(" 20000\t0123456789abcde\n 20001\t")
    assert "of more than" in content
    assert peak < 30_000_000


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("src/Main.py", "Did you mean 'src/main.py'"),
        ("main.py", "Did you mean 'src/main.py'"),
        ("source/main.py", "There is no directory 'source'"),
        ("src/mian.py", "src/main.py"),
        ("src\\main.py", "src/main.py"),
        ("./src/../src/man.py", "src/main.py"),
        ("zzzzzzzz", "There is no file 'zzzzzzzz' in the workspace. The workspace holds 'data.bin', 'src/'."),
        ("src/zzzz", "The directory 'src' holds 'main.py'."),
        ("workspace/src/main.py", "named 'workspace': leave 'workspace/' out: 'src/main.py' exists."),
        ("workspace/other.py", "named 'workspace': leave 'workspace/' out."),
        (
            "/repo/src/main.py",
            "'/repo/src/main.py' leads out of the workspace (an absolute path). Did you mean 'src/main.py'",
        ),
        ("../src/main.py", "Did you mean 'src/main.py', inside it?"),
        ("src", "It is a directory"),
        ("src/main.py/x", "part of the path is a file"),
        ("data.bin", "binary file"),
        ("../x", "'../x' leads out of the workspace (by '..'). The file tools reach only"),
        ("x" * 300, "shorter name"),
        ("loop", "symbolic link"),
    ],
)
async def test_a_file_that_cannot_be_read_says_what_would_help(box: Box, path: str, words: str) -> None:
    box.put("src/main.py", "pass")
    box.put("data.bin", b"\x7fELF\0\0")
    (box.root / "loop").symlink_to("loop")
    error = await box.fail("read_file", path=path)
    assert words in error.message
    assert not error.transient


async def test_a_folder_of_the_workspaces_own_name_is_not_taken_for_the_workspace(box: Box) -> None:
    box.put("workspace/main.py", "pass")
    error = await box.fail("read_file", path="workspace/other.py")
    assert "leave" not in error.message
    assert "The directory 'workspace' holds 'main.py'" in error.message


async def test_ignored_files_are_not_offered_as_the_nearest(box: Box) -> None:
    box.put(".gitignore", "hidden/\n")
    box.put("hidden/settings.py")
    box.put("src/settings.py")
    message = (await box.fail("read_file", path="settings.py")).message
    assert "src/settings.py" in message
    assert "hidden" not in message


async def test_names_with_control_characters_stay_on_one_line_in_hints(box: Box) -> None:
    box.put("evil\n\x1b[2Jname.py")
    message = (await box.fail("read_file", path="evilname.py")).message
    assert "\x1b" not in message
    assert "\n" not in message
    assert "evil\\n\\x1b[2Jname.py" in message


async def test_an_offset_beyond_the_end_says_how_long_the_file_is(box: Box) -> None:
    box.put("short", "a\nb\n")
    assert "has only 2 lines" in (await box.fail("read_file", path="short", offset=9)).message


async def test_a_kept_output_is_read_by_its_name(box: Box) -> None:
    box.output_dir.mkdir(parents=True)
    (box.output_dir / "bash-1.txt").write_text("kept\n")
    assert (await box.call("read_file", path=str(box.output_dir / "bash-1.txt"))).content == "     1\tkept"
    (box.output_dir / "link").symlink_to("/etc/passwd")
    assert "leads out" in (await box.fail("read_file", path=str(box.output_dir / "link"))).message


# --- writing -------------------------------------------------------------------------------------------------


async def test_a_new_file_is_made_with_its_directories_and_its_diff(box: Box) -> None:
    output = await box.call("write_file", path="a/b/new.txt", content="one\ntwo\n")
    assert (box.root / "a/b/new.txt").read_text() == "one\ntwo\n"
    assert output.changed == ("a/b/new.txt",)
    assert output.content == "Created a/b/new.txt (2 lines, 8 bytes)."
    assert output.diff == "--- /dev/null\n+++ b/a/b/new.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n"


async def test_a_change_is_recorded_under_the_file_s_own_name_and_told_on_one_line(box: Box) -> None:
    name = "a\u202f b\nc.txt"
    output = await box.call("write_file", path=name, content="x\n")
    assert output.changed == (name,)
    assert list(output.files) == [name]
    assert output.content.startswith(r"Created a\u202f b\nc.txt (")
    assert r"+++ b/a\u202f b\nc.txt" in output.diff.splitlines()
    assert list((await box.call("read_file", path=name)).files) == [name]
    (box.root / "link").symlink_to("b\udcff.txt")
    assert (await box.call("write_file", path="link", content="x\n")).changed == (r"b\udcff.txt",)


async def test_writing_what_is_there_already_changes_nothing(box: Box) -> None:
    file = box.put("same.txt", "same\n")
    before = file.stat()
    output = await box.call("write_file", path="same.txt", content="same\n")
    assert (output.changed, output.diff) == ((), "")
    assert "Nothing was changed" in output.content
    assert file.stat().st_mtime_ns == before.st_mtime_ns
    assert file.stat().st_ino == before.st_ino


async def test_replacing_a_file_keeps_its_mode_and_shows_the_diff(box: Box) -> None:
    box.put("run.sh", "#!/bin/sh\necho a\n").chmod(0o755)
    output = await box.call("write_file", path="run.sh", content="#!/bin/sh\necho b\n")
    assert stat.S_IMODE((box.root / "run.sh").stat().st_mode) == 0o755
    assert output.diff == "--- a/run.sh\n+++ b/run.sh\n@@ -1,2 +1,2 @@\n #!/bin/sh\n-echo a\n+echo b\n"


async def test_writing_through_a_link_inside_changes_its_target_and_keeps_the_link(box: Box) -> None:
    box.put("real.txt", "old")
    (box.root / "link.txt").symlink_to("real.txt")
    output = await box.call("write_file", path="link.txt", content="new")
    assert output.changed == ("real.txt",)
    assert (box.root / "link.txt").is_symlink()
    assert (box.root / "real.txt").read_text() == "new"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("dir", "directory"),
        (".", "the workspace itself"),
        ("file/below", "part of the path is a file"),
        ("../out", "leads out"),
        (".git/hooks/post-commit", "not written by this tool"),
        ("y" * 300, "shorter name"),
    ],
)
async def test_a_file_that_cannot_be_written_says_why(box: Box, path: str, words: str) -> None:
    (box.root / "dir").mkdir()
    box.put("file", "x")
    assert words in (await box.fail("write_file", path=path, content="x")).message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write read-only files")
async def test_a_read_only_file_is_not_replaced(box: Box) -> None:
    box.put("fixed", "x").chmod(0o444)
    assert "permissions" in (await box.fail("write_file", path="fixed", content="y")).message


@pytest.mark.parametrize(
    ("number", "transient"), [(errno.ENOSPC, True), (errno.EROFS, True), (errno.EACCES, False)]
)
async def test_a_full_disk_is_a_transient_failure(
    box: Box, monkeypatch: pytest.MonkeyPatch, number: int, transient: bool
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Workspace, "replace", refuse)
    error = await box.fail("write_file", path="a.txt", content="x")
    assert error.transient is transient
    assert error.message.startswith("Could not write 'a.txt'")


# --- editing -------------------------------------------------------------------------------------------------


async def test_an_edit_replaces_the_one_occurrence(box: Box) -> None:
    box.put("a.py", "a = 1\nb = 2\n")
    output = await box.call("edit_file", path="a.py", old="b = 2", new="b = 3")
    assert (box.root / "a.py").read_text() == "a = 1\nb = 3\n"
    assert output.changed == ("a.py",)
    assert output.content == "Edited a.py: replaced 1 occurrence, at line 2."
    assert output.diff == "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n a = 1\n-b = 2\n+b = 3\n"


async def test_replace_all_says_where(box: Box) -> None:
    box.put("a.py", "x\ny\nx\n")
    output = await box.call("edit_file", path="a.py", old="x", new="z", replace_all=True)
    assert "2 occurrences, at lines 1, 3" in output.content
    assert (box.root / "a.py").read_text() == "z\ny\nz\n"


@pytest.mark.parametrize(
    ("text", "old", "words"),
    [
        ("x\ny\nx\n", "x", ["matches 2 times, at lines 1, 3", "replace_all"]),
        ("x\n" * 30, "x", ["matches 30 times", "9, 10 and 20 more"]),
        ("def f(a):\n    return a\n", "def f(b):", ["closest lines", "     1\tdef f(a):"]),
        ("if x:\n\treturn 1\n", "if x:\n\treturn  1", ["only in white space", "     2\t\treturn 1"]),
        ("a\n  b\na\n b\n", "a\nb", ["but for white space it matches 2 times, at lines 1, 3", "replace_all"]),
        ("if x:\n  y\n    z\n", "  if x:\n    y\n    z", ["only in white space"]),
        ("one\ntwo\n", "     1\tone\n     2\ttwo", ["line numbers"]),
        ("one\ntwo\n", "qqqqqqqq", ["No line of the file is like it"]),
        ("", "x", ["The file is empty"]),
    ],
)
def test_an_edit_that_does_not_fit_says_what_would(text: str, old: str, words: list[str]) -> None:
    with pytest.raises(EditError) as caught:
        apply_edit(text, old, "new")
    assert "Nothing was changed" in str(caught.value)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(("old", "new", "word"), [("", "x", "empty"), ("a", "a", "same")])
def test_an_edit_that_says_nothing_is_refused(old: str, new: str, word: str) -> None:
    with pytest.raises(EditError, match=word):
        apply_edit("a", old, new)


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        ("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n"),
        ("a\r\nb\r\n", "b", "y\nz", "a\r\ny\r\nz\r\n"),
        ("a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n"),
        ("a\nb\n", "a\r\nb", "x\r\ny", "x\ny\n"),
        ("a\nb\r\nc\nd\n", "c\nd", "x\ny", "a\nb\r\nx\ny\n"),
        ("a\nb\r\nc\r\n", "b\nc", "y\nz", "a\ny\r\nz\r\n"),
    ],
)
def test_line_ends_of_the_file_are_kept(before: str, old: str, new: str, after: str) -> None:
    assert apply_edit(before, old, new).text == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("zwölf eins\n".encode("latin-1"), "zwölf zwei\n".encode("latin-1")),
        (b"\xff broken \xe4\xf6 z\xc3\xb6 eins", b"\xff broken \xe4\xf6 z\xc3\xb6 zwei"),
        (b"\xef\xbb\xbfmark eins\r\n", b"\xef\xbb\xbfmark zwei\r\n"),
        ("eins\n".encode("utf-16"), "zwei\n".encode("utf-16")),
        (b"\x0c\x0b\x85 eins", b"\x0c\x0b\x85 zwei"),
    ],
)
async def test_bytes_that_are_not_meant_survive_an_edit(box: Box, before: bytes, after: bytes) -> None:
    box.put("f", before)
    await box.call("edit_file", path="f", old="eins", new="zwei")
    assert (box.root / "f").read_bytes() == after


async def test_a_character_that_the_file_cannot_hold_is_said(box: Box) -> None:
    file = box.put("f", "zwölf\n".encode("latin-1"))
    assert "latin-1" in (await box.fail("edit_file", path="f", old="zwölf", new="✓")).message
    assert file.read_bytes() == "zwölf\n".encode("latin-1")


async def test_an_edit_keeps_the_mode(box: Box) -> None:
    box.put("run.sh", "echo a\n").chmod(0o700)
    await box.call("edit_file", path="run.sh", old="a", new="b")
    assert stat.S_IMODE((box.root / "run.sh").stat().st_mode) == 0o700


async def test_reads_at_the_same_time_as_writes_see_whole_files(box: Box) -> None:
    texts = ["a" * 20_000, "b" * 30_000]
    box.put("f", texts[0])

    async def write(number: int) -> None:
        await box.call("write_file", path="f", content=texts[number % 2])

    async def read() -> str:
        return (box.root / "f").read_text()

    results = await asyncio.gather(*(write(number) if number % 2 else read() for number in range(40)))
    assert {text for text in results if text} <= set(texts)


@given(
    before=st.text("ab\n\r é", max_size=40),
    old=st.text("ab\n", min_size=1, max_size=6),
    after=st.text("b\n é", max_size=40),
)
def test_an_edit_and_its_reverse_restore_the_text(before: str, old: str, after: str) -> None:
    text = before + old + after
    try:
        edited = apply_edit(text, old, "<UNIQUE>")
    except EditError:
        return
    restored = apply_edit(
        edited.text, "<UNIQUE>", text[len(edited.text.partition("<UNIQUE>")[0]) :][: len(old)]
    )
    start = edited.text.index("<UNIQUE>")
    length = len(text) - (len(edited.text) - len("<UNIQUE>"))
    assert apply_edit(edited.text, "<UNIQUE>", "x").text == text[:start] + "x" + text[start + length :]
    if length == len(old) and "\r" not in text:
        assert restored.text == text


@given(st.text(max_size=60), st.text(max_size=20), st.text(max_size=20), st.booleans())
def test_any_edit_is_made_or_refused_in_words(text: str, old: str, new: str, replace_all: bool) -> None:
    try:
        edit = apply_edit(text, old, new, replace_all=replace_all)
    except EditError:
        assert not old or old == new or text.replace("\r\n", "\n").count(old.replace("\r\n", "\n")) != 1
    else:
        assert edit.lines


async def test_a_miss_in_a_huge_file_is_explained_quickly_enough(box: Box) -> None:
    box.put("big.py", "".join(f"value_{number} = {number}\n" for number in range(200_000)))
    assert (
        "closest lines" in (await box.fail("edit_file", path="big.py", old="value_77 = 7_7", new="x")).message
    )


async def test_hints_for_texts_that_are_slow_to_compare_come_in_time(box: Box) -> None:
    for number in range(300):
        box.put("a" * 90 + "b" * 90 + f"{number:05}")
    box.put("slow", ("a" * 200 + "b" * 200 + "\n") * 5_000)
    started = time.process_time()
    await box.fail("read_file", path="ab" * 90)
    await box.fail("edit_file", path="slow", old="ab" * 200, new="x")
    assert time.process_time() - started < 5


def test_a_diff_of_lines_that_all_look_alike_comes_in_time() -> None:
    before, after = "x\n" * 1_980, "x\ny\n" * 990
    started = time.process_time()
    assert patched(before, unified_diff(before, after, "f")) == after
    assert time.process_time() - started < 5


@pytest.mark.parametrize("path", ["a" * 3_000, "\x1b" * 3_000, "a/" * 2_000 + "b"])
async def test_a_long_name_is_cut_in_errors(box: Box, path: str) -> None:
    message = (await box.fail("read_file", path=path)).message
    assert len(message) < 900
    assert "\x1b" not in message


# --- previews ------------------------------------------------------------------------------------------------


async def test_a_preview_is_the_whole_diff_and_changes_nothing(box: Box) -> None:
    box.put("a.txt", "old\n" * 5_000)
    tool = box.registry.get("write_file")
    assert tool is not None
    preview = tool.preview({"path": "a.txt", "content": "new\n" * 5_000}, box.workspace)
    assert preview.count("\n-old") + preview.count("\n+new") == 10_000
    assert (box.root / "a.txt").read_text() == "old\n" * 5_000


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("write_file", {"path": "../x", "content": ""}, "would fail"),
        ("edit_file", {"path": "a.txt", "old": "nope", "new": ""}, "would fail"),
        ("edit_file", {"path": "a.txt", "old": "old", "new": "new"}, "-old\n+new\n"),
        ("write_file", {"path": "a.txt", "content": "old\n"}, "Nothing would be changed"),
        ("write_file", {"path": "n.txt", "content": "n\n"}, "--- /dev/null\n+++ b/n.txt"),
        ("bash", {"command": "rm -rf build\nls", "timeout": 7}, "rm -rf build\nls"),
        ("bash", {"command": "ls"}, "120 s"),
    ],
)
def test_a_preview_says_what_would_happen(box: Box, name: str, arguments: dict[str, Any], words: str) -> None:
    box.put("a.txt", "old\n")
    tool = box.registry.get(name)
    assert tool is not None
    assert words in tool.preview(arguments, box.workspace)


# --- diffs and encodings -------------------------------------------------------------------------------------


def patched(before: str, diff: str) -> str:
    """`before` with a unified diff applied, by the format's own rules."""
    import re

    old, out, at = split_lines(before), list[str](), 0
    lines = split_lines(diff)[2:]
    for index, line in enumerate(lines):
        if header := re.match(r"@@ -(\d+)(?:,(\d+))? ", line):
            start = int(header[1]) - (0 if header[2] == "0" else 1)
            out += old[at:start]
            at = start
            continue
        bare = index + 1 < len(lines) and lines[index + 1].startswith("\\")
        body = line[1:].removesuffix("\n") if bare else line[1:]
        if line[0] in " -":
            assert old[at] == body
            at += 1
        if line[0] in " +":
            out.append(body)
    return "".join([*out, *old[at:]])


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "\n", "d\x0c\n", "e\u2028\n"]), max_size=30).map(
    "".join
)


@given(LINES, LINES, st.sampled_from(["", "end"]), st.sampled_from(["", "end", "other"]))
def test_a_diff_applied_to_the_old_text_gives_the_new(a: str, b: str, a_end: str, b_end: str) -> None:
    before, after = a + a_end, b + b_end
    diff = unified_diff(before, after, "f")
    assert (patched(before, diff) if diff else before) == after


def test_a_diff_of_texts_too_long_to_align_is_still_whole() -> None:
    before = "".join(f"a{number}\n" for number in range(9_000))
    after = "".join(f"b{number}\n" for number in range(9_500))
    diff = unified_diff("head\n" + before + "tail\n", "head\n" + after + "tail\n", "f")
    assert patched("head\n" + before + "tail\n", diff) == "head\n" + after + "tail\n"


def test_a_bounded_diff_says_what_it_leaves_out() -> None:
    diff = unified_diff("", "line\n" * 1_000, "f", new=True)
    cut = bounded_diff(diff, 500)
    assert len(cut) < 600
    assert f"of {len(diff):,} characters" in cut
    assert bounded_diff(diff, len(diff)) == diff


@given(st.binary(max_size=200))
def test_any_bytes_are_binary_or_survive_a_round_trip(data: bytes) -> None:
    try:
        encoding = detect(data)
        text = encoding.decode(data)
    except (BinaryContentError, UnicodeError):
        return
    assert encoding.encode(text) == data
    printable(text).encode("utf-8")


def test_a_sample_that_ends_inside_a_character_is_still_utf8() -> None:
    for shift in range(4):
        data = b"x" * shift + "é€😀".encode() * (SAMPLE // 9 + 1)
        assert detect(data[:SAMPLE]).codec == "utf-8"
        assert detect(b"x" * (SAMPLE - 2 - shift) + "é€😀".encode()[: 2 + shift]).codec == "utf-8"
