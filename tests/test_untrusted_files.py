"""Files of others have one way in: what it refuses, what it bounds, and that nothing goes around it."""

from __future__ import annotations

import ast
import os
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tui_agent import untrusted_files
from tui_agent.untrusted_files import UnusableFileError, content, database, found, head, opened, tail

ROOT = Path(__file__).resolve().parents[1]
READS = {"read_text", "read_bytes", "fdopen", "FileIO", "connect", "open", "copyfile"}
METHODS = {
    "ArgumentsEditor", "archive", "caller", "child", "live", "screen", "transcript", "workspace", "Workspace", "zstd",
}  # fmt: skip
"""Whose `open` opens no file, or is the file tools' own, which goes through the same door; those of zstd and of
an archive get an open file."""
OWN = {
    "acp/wire.py": "/dev/null, and the streams that this process was started with",
    "acp_client/entries.py": "the table of agents that we bring along",
    "agents/advisor.py": "the journal of a session of ours, below the state folder",
    "agents/answers.py": "an answer that a console of ours left, below the state folder",
    "agents/hook_client.py": "the lock of its daemon, in a folder that was looked at",
    "agents/night.py": "our own state",
    "agents/ntfy.py": "an address that the operator named",
    "agents/outbox.py": "our own state",
    "agents/questions.py": "our own state",
    "agents/stall.py": "/proc",
    "agents/shift.py": "the output of a task, in a file that we make",
    "agents/opencode.py": "the plugin that we bring along",
    "bounded_process.py": "/dev/null, and its own size in /proc",
    "cli/__init__.py": "/dev/null",
    "config/user_file.py": "the operator's own configuration",
    "console/looks/themes.py": "the operator's own themes",
    "console/terminal/crash.py": "makes a report of its own",
    "disk.py": "makes the file that it writes",
    "fleet/fleet.py": "the journal of a session of ours",
    "fleet/kept.py": "what a fleet wrote itself",
    "fleet/tasks.py": "named by the operator, who may give a pipe",
    "formats/exporters/html.py": "comes with the program",
    "frontend/editor.py": "a scratch file of ours",
    "frontend/preferences.py": "our own state",
    "frontend/prompt_history.py": "our own state",
    "installed.py": "what an installer noted of this copy",
    "lab/bench/behaviours.py": "comes with the program",
    "lab/bench/bench.py": "what the benchmark wrote itself",
    "lab/bench/case.py": "comes with the program, and the scratch folder of a case",
    "lab/bench/kept.py": "the scratch folder of a case",
    "lab/bench/kept_replies.py": "what the benchmark wrote itself",
    "lab/bench/notes.py": "what the benchmark wrote itself",
    "lab/bench/run.py": "scripts that come with the program",
    "lab/evaluation/behaviours.py": "a page and its data in this checkout",
    "lab/evaluation/implicit.py": "a page and its data in this checkout",
    "lab/evaluation/next_step/train.py": "a page and its data in this checkout",
    "lab/evaluation/playbook.py": "a page and its data in this checkout",
    "models/catalogue.py": "comes with litellm",
    "models/images.py": "the session's own copy, without links or waiting, by its digest",
    "models/kept_habits.py": "our own state",
    "models/scenario_file.py": "named by the operator, or comes with the program",
    "permissions/programs.py": "comes with the program",
    "permissions/risky.py": "comes with the program",
    "permissions/runners.py": "comes with the program",
    "playbook/store.py": "our own state",
    "processes.py": "/proc, pipes of our own, and the streams that a process was started with",
    "rule_book.py": "comes with the program",
    "sandbox/caller.py": "/proc of a stopped task, and descriptors that it holds",
    "sandbox/choose.py": "/dev/null",
    "sandbox/kernel_files.py": "/proc of our own",
    "sandbox/landlock.py": "folders as descriptors that read nothing",
    "sandbox/left_behind.py": "our own state",
    "sandbox/links_refused.py": "goes by descriptors itself, without links",
    "sandbox/socket_holders.py": "/proc",
    "session/counters.py": "our own state",
    "session/forked_journal.py": "the journal of a session of ours",
    "session/fork_outputs.py": "outputs that a session of ours kept",
    "tools/mcp/oauth/kept.py": "our own state",
    "session/opening.py": "the journal of a session of ours",
    "store/checkpoints.py": "our own repository of checkpoints",
    "store/images.py": "the session's own copies, for its fork",
    "store/journal.py": "the journal of a session of ours",
    "store/journal_index.py": "our own state",
    "store/journal_tail.py": "the journal of a session of ours",
    "store/kept_rules.py": "our own state",
    "store/lock.py": "our own state",
    "store/private.py": "how our own files are opened",
    "store/saved_state.py": "our own state, and the program's source",
    "store/session_index.py": "our own database",
    "store/session_store.py": "our own state",
    "store/trust_file.py": "our own state",
    "tools/background.py": "the output of a command, in a file that we make",
    "tools/failure_hints.py": "comes with the program",
    "tools/ignore.py": "goes by one descriptor itself, without links or waiting: a walk opens thousands",
    "tools/output.py": "the output of a command, in a file that we made",
    "tools/search_scope.py": "a scratch file of ours",
    "tools/supervisor.py": "/proc and /dev/null; it loads nothing of the program",
    "tools/workspace.py": "the file tools' own, over the same descriptors",
    "untrusted_files.py": "the one way in",
    "watch/piped.py": "our own standard input, the terminal, and a file that we make",
}  # fmt: skip
"""Modules that open files in another way, and whose files they are: a checkout's or another agent's never."""


def readers(path: Path) -> Iterator[str]:
    """Calls by which a module may read a file."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Name(id="open"):
                yield "open"
            case ast.Attribute(attr=name, value=value) if name in READS:
                called = value.func if isinstance(value, ast.Call) else value
                owner = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
                arguments = [getattr(one, "id", "") for one in getattr(value, "args", ())]
                if owner in METHODS or any(one in METHODS for one in arguments):
                    continue
                if name != "connect" or owner == "sqlite3":
                    yield f"{owner}.{name}"


def test_no_module_opens_files_of_others_by_itself() -> None:
    package = ROOT / "tui_agent"
    opening = {
        path.relative_to(package).as_posix(): found
        for path in sorted(package.rglob("*.py"))
        if (found := sorted(set(readers(path))))
    }
    strays = {name: found for name, found in opening.items() if name not in OWN}
    assert strays == {}, "read it through tui_agent/untrusted_files.py, or say in OWN whose file it is"
    assert sorted(OWN) == sorted(opening), "OWN names modules that open nothing"


@pytest.mark.parametrize(
    "code",
    [
        "open('x')", "Path('x').read_text()", "path.read_bytes()", "path.open('rb')", "os.open('x', 0)",
        "aiofiles.open('x')", "sqlite3.connect('x')", "io.FileIO('x')", "shutil.copyfile(a, b)",
    ],
)  # fmt: skip
def test_the_fence_sees_each_way_to_open_a_file(code: str, tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(code)
    assert list(readers(module)) != []


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with one of each kind, beside a file outside of it."""
    (tmp_path / "outside").write_bytes(b"secret")
    folder = tmp_path / "folder"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "plain").write_bytes(b"one\ntwo\n")
    (folder / "deep" / "er" / "plain").write_bytes(b"deep")
    os.mkfifo(folder / "pipe")
    (folder / "inside").symlink_to("plain")
    (folder / "out").symlink_to("../outside")
    (folder / "zero").symlink_to("/dev/zero")
    (folder / "circle").symlink_to(".")
    (folder / "round").symlink_to("round")
    (folder / "up").symlink_to("..")
    with (folder / "sparse").open("wb") as file:
        file.truncate(10 << 30)
    listener = socket.socket(socket.AF_UNIX)
    before = Path.cwd()
    os.chdir(folder)  # a socket's path is short
    listener.bind("socket")
    os.chdir(before)
    listener.close()
    return folder


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("pipe", "named pipe"),
        ("socket", "a socket"),
        ("zero", "leads out"),
        ("out", "leads out"),
        ("up/outside", "leads out"),
        ("../outside", "leads out"),
        ("sparse", "larger than 100"),
        ("deep", "directory"),
        ("round", "symbolic link"),
        ("nul\0", "null"),
    ],
)
def test_what_is_no_file_of_the_folder_is_refused_in_words(place: Path, name: str, why: str) -> None:
    with pytest.raises(OSError, match=why):
        content(place / name, 100, place)


def test_what_is_named_may_be_a_link_and_no_device(place: Path) -> None:
    assert content(place / "out", 100) == b"secret"
    with pytest.raises(UnusableFileError, match="a device"):
        opened(place / "zero")
    with pytest.raises(UnusableFileError, match="a named pipe"):
        opened(place / "pipe")


def test_both_ends_of_a_file_and_links_within_the_folder_are_read(place: Path) -> None:
    assert content(place / "inside", 8, place) == b"one\ntwo\n"
    assert head(place / "circle" / "plain", 3, place) == b"one"
    assert tail(place / "plain", 4) == b"two\n"
    assert head(place / "sparse", 3) == bytes(3)
    assert tail(place / "sparse", 3) == bytes(3)


def test_a_file_is_read_up_to_the_size_that_it_had(place: Path) -> None:
    with opened(place / "plain") as file:
        with (place / "plain").open("ab") as writer:
            writer.write(b"three\n")
        assert file.read() == b"one\ntwo\n"
    assert head(Path("/proc/self/status"), 100) == b""  # it says that it has none


def test_a_link_put_in_the_place_of_a_folder_on_the_way_is_not_followed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = untrusted_files.descriptor_beneath

    def swapped(root: Path, path: Path, *flags: int) -> int:
        (place / "deep").rename(place / "was")
        (place / "deep").symlink_to(place.parent)
        return real(root, path, *flags)

    (place.parent / "er").mkdir()
    (place.parent / "er" / "plain").write_bytes(b"secret")
    monkeypatch.setattr(untrusted_files, "descriptor_beneath", swapped)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        content(place / "deep" / "er" / "plain", 100, place)


def test_searches_end_and_keep_to_their_folder(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {path.relative_to(place).as_posix() for path in found(place, "**/*")}
    assert names == {"plain", "inside", "sparse", "deep/er/plain"}
    assert [path.name for path in found(place, "*", folders=True)] == ["deep", "circle"]
    assert list(found(place, "up/**/*")) == list(found(place / "nowhere", "*")) == []
    monkeypatch.setattr(untrusted_files, "_ENTRIES", 3)
    assert len(list(found(place, "**/*"))) <= 3
    monkeypatch.setattr(untrusted_files, "_SEARCHING", -1.0)
    assert list(found(place, "**/*")) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_files_of_other_users_are_left_out_where_they_have_to_be_ours(place: Path) -> None:
    os.chown(place / "plain", 12345, 12345)
    assert content(place / "plain", 100, place) != b""
    with pytest.raises(UnusableFileError, match="another user"):
        content(place / "plain", 100, place, own=True)
    assert place / "plain" not in set(found(place, "*", own=True))
    os.chown(place, 12345, 12345)
    assert content(place / "plain", 100, place, own=True) != b""


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE session (id TEXT)")
        connection.execute("INSERT INTO session VALUES ('one')")
    connection.close()
    return path


@pytest.mark.parametrize(
    "sql",
    [
        "ATTACH '/tmp/other.db' AS other",
        "INSERT INTO session VALUES ('two')",
        "PRAGMA journal_mode = WAL",
        "CREATE TEMP TABLE t (x)",
        "SELECT load_extension('x')",
        "SELECT length(zeroblob(100000000))",
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n",
        "VACUUM INTO '/tmp/other.db'",
    ],
)
def test_a_database_of_others_is_read_and_nothing_else(
    rows: Path, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(untrusted_files, "_ASKING", 0.05)
    with database(rows) as connection:
        assert connection.execute("SELECT id FROM session").fetchall() == [("one",)]
        with pytest.raises(sqlite3.Error):
            connection.execute(sql).fetchall()


@pytest.mark.parametrize("beside", ["", "-wal", "-shm", "-journal"])
def test_a_pipe_in_the_place_of_a_database_or_beside_it_is_refused(rows: Path, beside: str) -> None:
    path = rows.with_name(rows.name + beside)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    with pytest.raises(UnusableFileError, match="a named pipe"), database(rows):
        pass
