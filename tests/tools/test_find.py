"""Names and lines are found the same way with ripgrep and without, and `.gitignore` is respected."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import resource
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tools.box import Box, processes_with, wait_until
from tui_agent import processes
from tui_agent.core.events import ToolCall
from tui_agent.globs import GlobError, path_pattern
from tui_agent.tools.errors import ToolError
from tui_agent.tools.find import Glob, Grep
from tui_agent.tools.registry import ToolRegistry
from tui_agent.tools.search import Search
from tui_agent.tools.search_scope import SearchScope
from tui_agent.tools.walk import walk

needs_ripgrep = pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")
ENGINES = [pytest.param("ripgrep", marks=needs_ripgrep), "python"]


@pytest.fixture(params=ENGINES)
def found(request: pytest.FixtureRequest, box: Box) -> Box:
    """A box whose glob and grep use one of the engines."""
    search = Search(request.param)
    tools = [box.registry.get(name) for name in box.registry.names if name not in ("glob", "grep")]
    box.registry = ToolRegistry([Glob(search=search), Grep(search=search), *(tool for tool in tools if tool)])
    return box


def plant(box: Box) -> None:
    """A small project with nested ignore rules and awkward names."""
    box.put(".gitignore", "*.log\n/build/\nnode_modules\n!keep.log\ndoc/**/draft?.md\n")
    box.put("src/.gitignore", "generated_*\n!important.log\n")
    for path in (
        "README.md", "app.log", "keep.log", "src/main.py", "src/util.py", "src/generated_a.py", "src/important.log",
        "src/other.log", "build/out.py", "src/build/kept.py", "node_modules/lib/index.js", "doc/a/draft1.md",
        "doc/a/final.md", "doc/draft2.md", ".github/workflows/ci.yml", ".git/config", "sub/.git/config",
        "name with space.py", "new\nline.py", "é.py", "-dash.py", "a[1].py",
    ):  # fmt: skip
        box.put(path, f"needle in {path.replace(chr(10), ' ')}\n")


async def test_globs_honour_gitignore_and_come_sorted(found: Box) -> None:
    plant(found)
    output = await found.call("glob", pattern="**")
    assert output.content.split("\n") == [
        "-dash.py", ".github/workflows/ci.yml", ".gitignore", "README.md", "a[1].py", "doc/a/final.md", "keep.log",
        "name with space.py", "new\\nline.py", "src/.gitignore", "src/build/kept.py", "src/important.log",
        "src/main.py", "src/util.py", "é.py",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.md", ["README.md", "doc/a/final.md"]),
        ("src/*.py", ["src/main.py", "src/util.py"]),
        ("src/**/*.py", ["src/build/kept.py", "src/main.py", "src/util.py"]),
        ("**/ci.yml", [".github/workflows/ci.yml"]),
        ("{src,doc}/**/{main,final}.*", ["doc/a/final.md", "src/main.py"]),
        ("src/[mu]*.py", ["src/main.py", "src/util.py"]),
        ("src/[!m]*.py", ["src/util.py"]),
        ("a[[]1].py", ["a[1].py"]),
        ("./src/main.py", ["src/main.py"]),
        ("build/*.py", ["build/out.py"]),
        ("node_modules/**/*.js", ["node_modules/lib/index.js"]),
        (".git/*", [".git/config"]),
        ("src/other.log", []),
    ],
)
async def test_a_glob_finds_what_it_says(found: Box, pattern: str, names: list[str]) -> None:
    plant(found)
    output = await found.call("glob", pattern=pattern)
    assert [line for line in output.content.split("\n") if line != "No files match."] == names


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "src/../../x", "[", "{a", "a\0b", "x" * 3_000])
async def test_a_glob_that_is_none_or_leads_out_is_refused(found: Box, pattern: str) -> None:
    assert "pattern" in (await found.fail("glob", pattern=pattern)).message


async def test_a_glob_that_names_a_directory_says_how_to_see_its_files(found: Box) -> None:
    plant(found)
    assert "use 'src/**'" in (await found.call("glob", pattern="src")).content


async def test_an_absolute_glob_inside_the_workspace_is_taken(found: Box) -> None:
    plant(found)
    root = os.path.realpath(found.root)
    assert (await found.call("glob", pattern=f"{root}/src/m*.py")).content == "src/main.py"


async def test_grep_shows_path_line_and_text_and_leaves_out_what_is_ignored(found: Box) -> None:
    plant(found)
    found.put("src/main.py", "one\r\ntwo needle\r\nthree\r\n")
    output = await found.call("grep", pattern="needle$|in src/u", path="src")
    assert output.content == "src/main.py:2: two needle\nsrc/util.py:1: needle in src/util.py"


@pytest.mark.parametrize(
    ("arguments", "paths"),
    [
        ({"path": "build"}, ["build/out.py"]),
        ({"path": "node_modules/lib"}, ["node_modules/lib/index.js"]),
        ({"path": "src/other.log"}, ["src/other.log"]),
        ({"path": "src/build"}, ["src/build/kept.py"]),
        ({"glob": "*.md"}, ["README.md", "doc/a/final.md"]),
        ({"glob": "src/**/*.py"}, ["src/build/kept.py", "src/main.py", "src/util.py"]),
        ({"path": "src", "glob": "*.py"}, ["src/build/kept.py", "src/main.py", "src/util.py"]),
        ({"path": "src", "glob": "src/*.py"}, ["src/main.py", "src/util.py"]),
        ({"path": "doc", "glob": "*.py"}, []),
    ],
)
async def test_grep_is_narrowed_by_path_and_glob(
    found: Box, arguments: dict[str, Any], paths: list[str]
) -> None:
    plant(found)
    output = await found.call("grep", pattern="needle", **arguments)
    assert [line.split(":")[0] for line in output.content.split("\n") if ":" in line] == paths


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("x = 'ünïcode needle'\n".encode(), "f:1: x = 'ünïcode needle'"),
        (b"caf\xe9 needle\n", "f:1: caf\ufffd needle"),
        ("\ufeffneedle\n".encode(), "f:1: needle"),
        ("needle é\n".encode("utf-16"), "f:1: needle é"),
        (b"needle\nmore\n\0binary", None),
        (b"\0needle", None),
        pytest.param(b"needle\n" + b"x\n" * 200_000 + b"\0", None, id="NUL far in"),
        (b"no end needle", "f:1: no end needle"),
        (b"\x0cform\x0bfeed needle\n", "f:1: \x0cform\x0bfeed needle"),
        ("a\u2028needle\n".encode(), "f:1: a\u2028needle"),
    ],
)
async def test_grep_reads_encodings_and_leaves_out_binary_files(
    found: Box, content: bytes, line: str | None
) -> None:
    found.put("f", content)
    assert (await found.call("grep", pattern="needle")).content == (line or "No matches.")


async def test_a_match_deep_in_a_long_line_is_shown_with_what_is_round_it(found: Box) -> None:
    found.put("min.js", "x" * 50_000 + "needle" + "y" * 50_000)
    content = (await found.call("grep", pattern="needle")).content
    assert "[...]" in content
    assert "xneedley" in content
    assert len(content) < 400


async def test_many_matches_are_capped_and_counted(found: Box) -> None:
    found.put("many.txt", "needle\n" * 1_234)
    content = (await found.call("grep", pattern="needle")).content
    assert content.count("many.txt:") == 200
    assert "first 200 of 1,234 matches" in content


async def test_more_matches_than_anyone_counts_end_the_search(found: Box) -> None:
    for number in range(4):
        found.put(f"{number}.txt", "needle\n" * 9_000)
    assert "of more than 1" in (await found.call("grep", pattern="needle")).content


async def test_many_files_are_capped_and_counted(found: Box) -> None:
    for number in range(700):
        found.put(f"d{number % 7}/f{number}.txt")
    content = (await found.call("glob", pattern="*.txt")).content
    assert content.count("\n") == 500
    assert "first 500 of 700 files" in content


@pytest.mark.parametrize(
    ("pattern", "word"), [("(", "regular expression"), ("a\nb", "line"), (r"a\nb", "line")]
)
async def test_an_expression_that_cannot_be_is_explained(found: Box, pattern: str, word: str) -> None:
    found.put("a.txt", "a")
    assert word in (await found.fail("grep", pattern=pattern)).message


@pytest.mark.parametrize("pattern", [r"(?<=x)needle", r"(n)ee\1?dle", "needle{,3}", "(?i)NEEDLE"])
async def test_expressions_of_pythons_dialect_work_with_either_engine(found: Box, pattern: str) -> None:
    found.put("a.txt", "xneedle\n")
    assert (await found.call("grep", pattern=pattern)).content == "a.txt:1: xneedle"


async def test_a_missing_path_names_the_nearest(found: Box) -> None:
    plant(found)
    assert "src/util.py" in (await found.fail("grep", pattern="x", path="src/utils.py")).message
    assert "workspace" in (await found.fail("grep", pattern="x", path="../x")).message


async def test_links_are_not_followed(found: Box, tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("needle")
    (found.root / "link.txt").symlink_to(tmp_path / "out.txt")
    (found.root / "up").symlink_to("..")
    assert (await found.call("grep", pattern="needle")).content == "No matches."
    assert (await found.call("glob", pattern="*.txt")).content == "No files match."


async def test_kept_outputs_can_be_searched_by_their_name(found: Box) -> None:
    found.output_dir.mkdir(parents=True)
    kept = found.output_dir / "bash-1.txt"
    kept.write_text("a\nneedle\n")
    assert (await found.call("grep", pattern="needle", path=str(kept))).content == f"{kept}:2: needle"


async def test_an_expression_that_never_ends_is_stopped_and_its_process_gone(box: Box) -> None:
    box.put("a.txt", "a" * 60 + "b\n")
    grep = Grep(search=Search("python", timeout=1.0))
    registry = ToolRegistry([grep])
    parsed = registry.parse(ToolCall(id="1", name="grep", arguments='{"pattern": "(a+)+$"}'))
    with pytest.raises(ToolError, match="took longer than 1 s"):
        await parsed.tool.run(parsed.arguments, box.context)
    assert await wait_until(lambda: not _searches_in(box.root))


async def test_a_cancelled_search_leaves_no_process(box: Box) -> None:
    box.put("a.txt", "a" * 60 + "b\n")
    task = asyncio.ensure_future(Grep(search=Search("python")).run({"pattern": "(a+)+$"}, box.context))
    assert await wait_until(lambda: bool(_searches_in(box.root)))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await wait_until(lambda: not _searches_in(box.root))


def _searches_in(root: Path) -> list[int]:
    found = []
    for pid in processes_with("tui_agent.tools.search_process"):
        try:
            if Path(f"/proc/{pid}/cwd").readlink() == root:
                found.append(pid)
        except OSError:
            continue
    return found


@pytest.mark.process
async def test_a_search_that_is_given_up_in_mid_output_ends(box: Box) -> None:
    box.put("line", b"a" * 80_000_000)
    async with asyncio.timeout(120):
        with pytest.raises(ToolError, match="line too long"):
            await Search("python").lines(SearchScope.at(box.root, box.root), "a", None)


async def test_many_matches_in_one_file_cost_little_memory(box: Box) -> None:
    box.put("many", b"a\n" * 5_000_000)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    found = await Search("python").lines(SearchScope.at(box.root, box.root), "a", None)
    assert not found.complete
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss <= max(before, 300_000)


async def test_a_reply_of_many_searches_runs_few_at_a_time(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    running, most = 0, 0
    start = processes.start

    async def counted(*arguments: Any, **options: Any) -> processes.Child:
        nonlocal running, most
        child = await start(*arguments, **options)
        running, most = running + 1, max(most, running + 1)
        end = child.end

        async def ended(grace: float = 0.0) -> None:
            nonlocal running
            await end(grace)
            running -= 1

        monkeypatch.setattr(child, "end", ended)
        return child

    monkeypatch.setattr(processes, "start", counted)
    box.put("a", "needle\n")
    results = await asyncio.gather(*(box.call("grep", pattern="needle") for _ in range(12)))
    assert [result.content for result in results] == ["a:1: needle"] * 12
    assert 0 < most <= 4


async def test_a_module_in_the_workspace_is_not_imported_by_the_search(box: Box, monkeypatch: Any) -> None:
    box.put("json.py", "open('owned', 'w')\nneedle = 1\n")
    box.put("re.py", "open('owned', 'w')\n")
    output = await Grep(search=Search("python")).run({"pattern": "needle"}, box.context)
    assert output.content == "json.py:2: needle = 1"
    assert not (box.root / "owned").exists()


async def test_without_ripgrep_on_the_path_the_search_works_all_the_same(box: Box, monkeypatch: Any) -> None:
    plant(box)
    monkeypatch.setenv("PATH", "")
    assert (await box.call("grep", pattern="needle", glob="*.md")).content.startswith("README.md:1:")


# --- what a directory holds ----------------------------------------------------------------------------------


async def test_a_listing_shows_kinds_sizes_and_the_ignored_last(box: Box) -> None:
    plant(box)
    (box.root / "link").symlink_to("src")
    lines = (await box.call("list_dir")).content.split("\n")
    assert lines[:4] == ["-dash.py  19", ".github/", ".gitignore  54", "README.md  20"]
    assert "link@" in lines
    assert "src/" in lines
    assert "new\\nline.py  22" in lines
    assert lines[-1] == "(ignored: .git/, app.log, build/, node_modules/)"


async def test_a_listing_of_a_directory_below_uses_the_rules_above_it(box: Box) -> None:
    plant(box)
    lines = (await box.call("list_dir", path="src")).content.split("\n")
    assert lines[-1] == "(ignored: generated_a.py, other.log)"
    assert "important.log  28" in lines


async def test_a_listing_of_an_ignored_directory_shows_what_it_holds(box: Box) -> None:
    plant(box)
    assert (await box.call("list_dir", path="node_modules")).content == "lib/"


async def test_a_long_listing_is_capped_and_counted(box: Box) -> None:
    for number in range(600):
        box.put(f"f{number:03}")
    assert "100 of 600 entries left out" in (await box.call("list_dir")).content


@pytest.mark.parametrize(
    ("path", "words"), [("scr", "Did you mean 'src'"), ("src/main.py", "read_file"), ("..", "leads out")]
)
async def test_a_listing_that_cannot_be_says_why(box: Box, path: str, words: str) -> None:
    box.put("src/main.py")
    assert words in (await box.fail("list_dir", path=path)).message


async def test_an_empty_directory_is_said_to_be_empty(box: Box) -> None:
    assert "is empty" in (await box.call("list_dir")).content


# --- agreement -----------------------------------------------------------------------------------------------

NAME = st.sampled_from(["a", "b", "ab", "a.py", "b.py", "build", "x.log", ".h", "A", "a b", "[a]", "é"])
TREE = st.lists(st.lists(NAME, min_size=1, max_size=4).map("/".join), min_size=1, max_size=25)
USUAL = st.sampled_from(
    [
        *(
            "*",
            "!*/",
            "!*.py",
            "*.py",
            "/a",
            "a/",
            "!a",
            "a/b",
            "**/b",
            "a/**",
            "a/**/b",
            "**",
            "build",
            "/build/",
        ),
        *(
            "!build",
            "[ab]",
            "[!a]",
            "a*",
            "?",
            ".*",
            "!.h",
            "# no",
            "",
            "  ",
            "x.log ",
            r"\!a",
            r"\#",
            "a\\ b",
            "/*",
        ),
        *("!/a/", "*/b", "a/*", "!a/b", "[[]a]", "[a-z]", "é"),
    ]
)
ODD = st.one_of(
    st.sampled_from(["/", "!", "[", "[a", "**a", "a**", "a/**/"]), st.text("ab*?/![].\\", max_size=6)
)
RULES = st.lists(USUAL, max_size=5).map("\n".join)
ANY_RULES = st.lists(st.one_of(USUAL, ODD), max_size=5).map("\n".join)


def grow(root: Path, tree: list[str], ignores: list[tuple[str, str]]) -> None:
    for path in tree:
        file = root / path
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            if not file.is_dir():
                file.write_text("needle\n")
        except (FileExistsError, NotADirectoryError):
            continue
    for where, rules in ignores:
        if (root / where).is_dir():
            (root / where / ".gitignore").write_text(rules)


@needs_ripgrep
@settings(suppress_health_check=list(HealthCheck))
@given(tree=TREE, top=RULES, below=RULES, where=NAME, start=NAME)
def test_both_engines_list_the_same_files(
    tmp_path_factory: pytest.TempPathFactory, tree: list[str], top: str, below: str, where: str, start: str
) -> None:
    root = Path(os.path.realpath(tmp_path_factory.mktemp("tree")))
    grow(root, tree, [("", top), (where, below)])
    places = [root] + ([root / start] if (root / start).is_dir() else [])
    for path in places:
        place = SearchScope.at(root, path)
        ours = [place.label + entry.path for entry in walk(place.top, place.start) if not entry.is_dir]
        assert ours == asyncio.run(Search("ripgrep").files(place, "**", 10_000)).items
    shutil.rmtree(root)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(suppress_health_check=list(HealthCheck))
@given(tree=TREE, top=ANY_RULES, below=ANY_RULES, where=NAME)
def test_what_is_ignored_is_what_git_ignores(
    tmp_path_factory: pytest.TempPathFactory, tree: list[str], top: str, below: str, where: str
) -> None:
    root = Path(os.path.realpath(tmp_path_factory.mktemp("repo")))
    grow(root, tree, [("", top), (where, below)])
    environment = {"PATH": os.environ["PATH"], "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
    git = ["git", "-c", "core.quotePath=false", "-C", str(root)]
    subprocess.run([*git, "init", "-q"], check=True, env=environment)
    listing = [*git, "ls-files", "--others", "--exclude-standard", "-z"]
    out = subprocess.run(listing, check=True, env=environment, capture_output=True).stdout.decode()
    ours = sorted(entry.path for entry in walk(root) if not entry.is_dir)
    assert ours == sorted(filter(None, out.split("\0")))
    shutil.rmtree(root)


@given(st.text(alphabet="ab*?/![]{},\\-^.:", max_size=30), st.text(alphabet="ab/.", max_size=20))
def test_any_text_is_a_glob_or_a_typed_error(pattern: str, path: str) -> None:
    with contextlib.suppress(GlobError):
        path_pattern(pattern).fullmatch(path)


def matches_simply(glob: str, path: str) -> bool:
    """What a glob means, said without any care for time: `**/` any directories, `*` and `?` within a name."""
    if not glob:
        return not path
    if glob.startswith("**/"):
        rest = glob[3:]
        places = [0, *(at + 1 for at, char in enumerate(path) if char == "/")]
        return any(matches_simply(rest, path[at:]) for at in places)
    if glob[0] == "*":
        ends = range(len(path.partition("/")[0]) + 1)
        return any(matches_simply(glob[1:], path[end:]) for end in ends)
    same = path[:1] == glob[0] or (glob[0] == "?" and path[:1] not in ("", "/"))
    return same and matches_simply(glob[1:], path[1:])


PIECES = st.lists(st.sampled_from(["a", "b", "?", "*a", "*b", "/", "/**/", "*"]), max_size=7).map("".join)


@settings(max_examples=300, deadline=None)
@given(PIECES, st.text(alphabet="ab/", max_size=12))
def test_a_glob_matched_quickly_matches_what_it_means(pattern: str, path: str) -> None:
    while "//" in pattern or "***" in pattern or "/**/**/" in pattern:
        pattern = pattern.replace("//", "/").replace("***", "*").replace("/**/**/", "/**/")
    pattern = f"a/{pattern}x"
    if re.search(r"[^/]\*\*|\*\*[^/]", pattern):
        pattern = re.sub(r"(?<![/*])\*\*|\*\*(?![/*])", "*", pattern)
    path = f"a/{path}x"
    assert (path_pattern(pattern).fullmatch(path) is not None) is matches_simply(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("{a,b{c,d}}x", ["ax", "bcx", "bdx"], ["bx", "x"]),
        ("src/{a,b}/*.{py,js}", ["src/a/x.py", "src/b/x.js"], ["src/c/x.py"]),
        ("{a}", ["a", "q/a"], ["{a}"]),
        ("[{]a[}]", ["{a}"], ["a"]),
        ("\\{a\\}", ["{a}"], ["a"]),
        ("a,b}", ["a,b}"], ["a"]),
        ("{,x}a", ["a", "xa"], ["ya"]),
    ],
)
def test_braces_stand_for_alternatives(pattern: str, yes: list[str], no: list[str]) -> None:
    assert all(path_pattern(pattern).fullmatch(path) for path in yes)
    assert not any(path_pattern(pattern).fullmatch(path) for path in no)


@pytest.mark.parametrize(
    "pattern",
    ["*a" * 14 + "b", "*a*/" * 30 + "b", "**/a/" * 30 + "b", "**/*a/" * 200 + "b", "*?" * 60 + "z"],
    ids=["stars", "stars in names", "directories", "both", "question marks"],
)
async def test_no_glob_and_no_ignore_file_takes_long(box: Box, pattern: str) -> None:
    box.put(".gitignore", f"{pattern}\n")
    box.put("a" * 200, "a\n")
    box.put("a/" * 40 + "a", "a\n")
    started = time.process_time()
    for name in ("aa", "a/" * 2_000 + "c", "a" * 4_000):
        path_pattern(pattern).fullmatch(name)
    await box.call("list_dir")
    await box.fail("read_file", path="missing")
    assert time.process_time() - started < 3


def test_braces_that_stand_for_too_many_globs_are_refused() -> None:
    with pytest.raises(GlobError, match="more than 100"):
        path_pattern("{a,b}" * 20)
