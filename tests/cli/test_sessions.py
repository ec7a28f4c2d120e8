"""`agent-tui sessions`: every verb through the real command line, over a session that was really run."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.conftest import CommandLine
from tests.formats import samples
from tests.store.session_events import write_session
from tui_agent.cli import main
from tui_agent.cli.sessions import VERBS
from tui_agent.core.events import CheckpointSaved, SessionStarted
from tui_agent.store.checkpoints import Checkpoints
from tui_agent.store.errors import CheckpointError
from tui_agent.store.session_store import SessionStore
from tui_agent.store.shadow_git import ShadowGit

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Ended

TURNS = (
    '[[turns]]\ncalls = [{ tool = "read_file", args = { path = "missing.txt" } }]\n'
    '[[turns]]\ntext = "The walrus is \\u001b[31mhere."\nrepeat = 9\n'
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, bytes]:
    """Id and journal of a session that was run once for all tests here."""
    base = tmp_path_factory.mktemp("made")
    cli = CommandLine(base, base)
    assert cli("run", "look for the walrus", "--model", cli.scenario(TURNS)).code == 0
    (folder,) = (cli.state / "sessions").iterdir()
    return folder.name, (folder / "events.jsonl").read_bytes()


@pytest.fixture
def session(cli: CommandLine, made: tuple[str, bytes]) -> str:
    """That session in this test's own state folder."""
    name, journal = made
    text = journal.decode()
    started = json.loads(text.splitlines()[0])["workspace"]
    folder = cli.state / "sessions" / name
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text(text.replace(json.dumps(started), json.dumps(str(cli.workspace))))
    return name


@pytest.fixture
def sessions(
    cli: CommandLine, session: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """`agent-tui sessions …` on the same state folder: exit code, output, errors."""
    monkeypatch.chdir(cli.workspace)

    def run(*words: str) -> tuple[int, str, str]:
        ended = cli("sessions", *words)
        return ended.code, ended.out, ended.err

    return run


Sessions = Any


def test_a_run_leaves_the_list_up_to_date_and_lets_old_sessions_go(cli: CommandLine) -> None:
    old = cli.state / "sessions" / "old"
    write_session(old, [SessionStarted(session_id="old", workspace="/w")])
    os.utime(old / "events.jsonl", (1_000_000_000, 1_000_000_000))
    ended = cli("run", "look", "--model", cli.scenario(TURNS), AGENT_TUI_RETENTION_DAYS="30")
    assert ended.code == 0
    store = SessionStore(cli.state)
    assert store.stale() == 0
    assert [row.outcome for row in store.rows()] == ["answered"]
    assert [row.id for row in store.trash()] == ["old"]


def test_sessions_are_listed_with_outcome_and_title(sessions: Sessions, session: str) -> None:
    for words in ((), ("list",), ("list", "--in", ".")):
        code, out, _ = sessions(*words)
        assert code == 0
        assert session in out
        assert "answered" in out
        assert "1/2 recovered" in out  # a text-only reply that was not taken; the failed call was not
        assert "look for the walrus" in out
    assert json.loads(sessions("list", "--json")[1])["id"] == session
    assert "No session" in sessions("list", "--in", "/")[1]


def test_a_session_whose_run_has_not_ended_is_unfinished_everywhere(
    cli: CommandLine, sessions: Sessions, session: str
) -> None:
    journal = cli.state / "sessions" / session / "events.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(line for line in lines if b'"run_finished"' not in line))
    assert session in sessions("list")[1]
    assert "  unfinished  " in sessions("list")[1]
    assert "unfinished" in sessions("show", session)[1]


def test_a_session_in_which_nothing_was_said_is_not_listed(cli: CommandLine, sessions: Sessions) -> None:
    write_session(
        cli.state / "sessions" / "silent", [SessionStarted(session_id="silent", workspace=str(cli.workspace))]
    )
    assert "silent" not in sessions("list")[1]
    assert "silent" not in sessions("list", "--json")[1]


def test_a_session_is_shown_by_the_beginning_of_its_id_or_by_its_title(
    sessions: Sessions, session: str
) -> None:
    shown = sessions("show", session[:10])[1]
    assert f"agent-tui replay {session}" in shown
    assert sessions("show", "look for the walrus")[1] == shown
    assert json.loads(sessions("show", session, "--json")[1])["outcome"] == "answered"


@pytest.mark.parametrize("form", ["markdown", "html", "json", "messages", "text"])
def test_a_session_is_exported_in_every_form_without_control_characters(
    sessions: Sessions, session: str, form: str
) -> None:
    code, out, err = sessions("export", session, "--format", form)
    assert code == 0, err
    assert "walrus" in out
    assert "\x1b" not in out


def test_an_export_never_overwrites_a_file_unasked(sessions: Sessions, session: str) -> None:
    assert sessions("export", session, "--to", "out.md")[0] == 0
    assert "walrus" in Path("out.md").read_text()
    Path("out.md").write_text("mine")
    code, _, err = sessions("export", session, "--to", "out.md")
    assert (code, Path("out.md").read_text()) == (2, "mine")
    assert "--force" in err
    assert sessions("export", session, "--to", "out.md", "--force")[0] == 0
    assert "walrus" in Path("out.md").read_text()


def test_an_exported_session_can_be_imported_where_it_was_deleted(sessions: Sessions, session: str) -> None:
    sessions("export", session, "--format", "json", "--to", "session.json")
    sessions("delete", session)
    sessions("trash", "--empty")
    assert session not in sessions("list")[1]
    code, out, _ = sessions("import", "session.json")
    assert code == 0
    assert session in out
    assert session in sessions("list")[1]
    assert "imported before" in sessions("import", "session.json")[1]


def test_an_import_says_what_was_understood_left_out_and_damaged(
    cli: CommandLine, sessions: Sessions
) -> None:
    recording = samples.write(cli.workspace, "claude_code")
    with recording.open("a") as file:
        file.write("{torn \x1b[31m\n" + '{"type": "progress", "uuid": "z"}\n')
    code, out, err = sessions("import", str(recording), "nothing.json")
    assert code == 0
    assert "Imported from Claude Code: " in out
    assert "records understood" in out
    assert "progress ×" in out
    assert "Damaged and left out: line" in out
    assert "\x1b" not in out
    assert "nothing.json" in err


def test_a_deleted_session_can_be_brought_back(sessions: Sessions, session: str) -> None:
    assert "restore" in sessions("delete", session[:12])[1]
    assert session not in sessions("list")[1]
    assert session in sessions("trash")[1]
    assert sessions("restore", session)[0] == 0
    assert session in sessions("list")[1]
    assert "empty" in sessions("trash")[1]


def test_a_session_is_forked_from_any_event_and_stays_as_it_was(
    cli: CommandLine, sessions: Sessions, session: str
) -> None:
    journal = cli.state / "sessions" / session / "events.jsonl"
    before = journal.read_bytes()
    code, out, err = sessions("fork", session, "--at", "3", "--policy", "hpd")
    assert code == 0
    forked = out.strip()
    assert f"agent-tui resume {forked}" in err
    facts = json.loads(sessions("show", forked, "--json")[1])
    assert (facts["parent"], facts["parent_seq"], facts["policy"]) == (session, 3, "hpd")
    assert journal.read_bytes() == before
    code, _, err = sessions("fork", session, "--at", "9999")
    assert code == 2
    assert "Traceback" not in err


@pytest.mark.skipif(not ShadowGit.installed(), reason="git is not installed")
def test_a_forks_checkpoints_stay_when_its_parent_goes_for_good(cli: CommandLine, sessions: Sessions) -> None:
    (cli.workspace / "a.py").write_text("1")
    ref = asyncio.run(Checkpoints(cli.state, cli.workspace, "parent").save("before run 1")).ref
    events = [
        SessionStarted(session_id="parent", workspace=str(cli.workspace)),
        CheckpointSaved(ref=ref, before="run 1"),
    ]
    write_session(cli.state / "sessions" / "parent", events)
    forked = sessions("fork", "parent")[1].strip()
    for name in ("parent", forked):
        sessions("delete", name)
        if name == "parent":
            assert sessions("trash", "--empty")[1] == "1 removed for good\n"
            assert asyncio.run(Checkpoints(cli.state, cli.workspace, forked).diff(ref)) == []
    sessions("trash", "--empty")
    with pytest.raises(CheckpointError, match="is gone"):
        asyncio.run(Checkpoints(cli.state, cli.workspace, forked).diff(ref))


def test_a_session_is_renamed_in_its_journal(sessions: Sessions, session: str) -> None:
    assert sessions("rename", session, "the walrus hunt")[0] == 0
    assert "the walrus hunt" in sessions("list")[1]
    assert sessions("rename", session, " ")[0] == 2


def test_words_are_found_in_conversations(sessions: Sessions, session: str) -> None:
    code, out, _ = sessions("search", "walrus", "look")
    assert code == 0
    assert session in out
    assert sessions("search", "giraffe")[0] == 1


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("lst",), ["there is no verb 'lst'", "agent-tui sessions list"]),
        (("show",), ["SESSION"]),
        (("show", "nope"), ["There is no session 'nope'", "agent-tui sessions"]),
        (("export", "nope"), ["There is no session 'nope'"]),
        (("export", "x", "--format", "pdf"), ["is not one of markdown, html"]),
        (("import", "missing.json"), ["missing.json"]),
        (("restore", "nope"), ["is not in the trash"]),
        (("list", "--limt", "3"), ["there is no option --limt", "did you mean --limit?"]),
    ],
)
def test_a_slip_is_reported(sessions: Sessions, words: tuple[str, ...], parts: list[str]) -> None:
    code, out, err = sessions(*words)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    for part in parts:
        assert part in err


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", verb, "--help"]) == 0
    said = capsys.readouterr().out
    assert f"agent-tui sessions {verb}" in said.split("example:")[1]


def test_without_any_session_the_list_says_so(cli: CommandLine) -> None:
    ended: Ended = cli("sessions")
    assert ended.code == 0
    assert "agent-tui demo" in ended.out
