"""`agent-tui replay --print` and the finding of sessions by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tui_agent.store.errors import SessionError
from tui_agent.store.session_store import SessionStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import CommandLine, Ended

TURNS = """
[[turns]]
calls = [{ tool = "read_file", args = { path = "missing.txt" } }]
[[turns]]
calls = [{ tool = "list_dir", args = {} }]
[[turns]]
text = "It is \\u001b[31mdone."
"""


@pytest.fixture
def session(cli: CommandLine) -> Path:
    assert cli("run", "look around", "--model", cli.scenario(TURNS)).code == 0
    (folder,) = (cli.state / "sessions").iterdir()
    return folder


@pytest.mark.process
def test_the_newest_session_is_printed_as_text_without_a_terminal(cli: CommandLine, session: Path) -> None:
    ended = cli.process("replay", "--print")
    assert ended.code == 0
    for words in ("look around", "missing.txt", "guide", "done."):
        assert words in ended.out
    assert "\x1b" not in ended.out
    assert cli("replay", session.name[:12], "--print").out == ended.out
    assert cli("replay", str(session / "events.jsonl"), "--print").out == ended.out
    assert cli("replay", session.name, AGENT_TUI_PRINT="1").out == ended.out


def test_printing_stops_at_the_event_that_is_asked_for(cli: CommandLine, session: Path) -> None:
    assert "done." not in cli("replay", "--print", "--at", "8").out
    assert "look around" in cli("replay", "--print", "--at", "8").out


def test_a_torn_end_is_reported_and_what_comes_before_it_is_printed(cli: CommandLine, session: Path) -> None:
    journal = session / "events.jsonl"
    whole = cli("replay", "--print").out
    journal.write_bytes(journal.read_bytes() + b'{"seq": 99, "ty')
    ended = cli("replay", "--print")
    assert (ended.code, ended.out) == (0, whole)
    assert "15 bytes" in ended.err


def test_without_any_session_the_demo_is_recommended(
    cli: CommandLine, refused: Callable[[Ended, int], str]
) -> None:
    assert "agent-tui demo" in refused(cli("replay", "--print"), 2)


def test_a_session_is_found_by_its_name_or_the_beginning_of_it(tmp_path: Path) -> None:
    for name in ("20260101-1", "20260102-1", "20260102-2"):
        folder = tmp_path / "sessions" / name
        folder.mkdir(parents=True)
        (folder / "events.jsonl").touch()
    store = SessionStore(tmp_path)
    assert store.resolve("20260101").name == "20260101-1"
    assert store.resolve("20260102-2").name == "20260102-2"
    with pytest.raises(SessionError, match="More than one session is called '20260102'"):
        store.resolve("20260102")
    with pytest.raises(SessionError, match="There is no session '2026-nope'"):
        store.resolve("2026-nope")


def recorded_runs(cli: CommandLine) -> str:
    """A file of two runs of another agent."""
    path = cli.workspace / "runs.json"
    runs = [
        {
            "task_id": number,
            "trial": 0,
            "reward": 0.0,
            "info": {},
            "traj": [
                {"role": "user", "content": f"task {number}"},
                *(message for call in "abc" for message in _failing(f"{call}{number}")),
            ],
        }
        for number in (0, 1)
    ]
    path.write_text(json.dumps(runs))
    return str(path)


def _failing(call: str) -> list[dict[str, object]]:
    function = {"name": "book", "arguments": "{}"}
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call, "name": "book", "content": "Error: no seats"},
    ]


def test_a_run_and_a_policy_can_be_chosen_for_a_recording(cli: CommandLine) -> None:
    path = recorded_runs(cli)
    first = cli("replay", path, "--print")
    assert (first.code, "task 0" in first.out, "task 1" in first.out) == (0, True, False)
    assert "2 runs" in first.err
    second = cli("replay", path, "--print", "--run", "2", "--policy", "gigi")
    assert ("task 1" in second.out, "gigi" in second.out, second.err) == (True, True, "")
    assert "gigi" not in first.out


def test_a_run_that_is_not_there_is_reported_in_words(
    cli: CommandLine, refused: Callable[[Ended, int], str]
) -> None:
    assert "2 runs" in refused(cli("replay", recorded_runs(cli), "--print", "--run", "3"), 2)
    assert "nonsense" in refused(cli("replay", recorded_runs(cli), "--print", "--policy", "nonsense"), 2)


def test_our_own_session_is_judged_anew_only_when_a_policy_is_named(cli: CommandLine, session: Path) -> None:
    recorded = cli("replay", "--print")
    assert cli("replay", "--print", AGENT_TUI_POLICY="hpd").out == recorded.out
    anew = cli("replay", "--print", "--policy", "hpd")
    assert anew.code == 0
    assert "Judged anew by hpd" in anew.err
    assert anew.out != recorded.out
