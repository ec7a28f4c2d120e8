"""`agent-tui watch` in lines: finding the session, printing what is new, ending where the policy would stop or ask."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.formats import agent_records, more_agents, samples
from tests.watch import recordings

if TYPE_CHECKING:
    from tests.cli.conftest import CommandLine


def claude_session(cli: CommandLine, name: str, workspace: Path) -> Path:
    """A running session of Claude Code, of which nothing but the task is there."""
    folder = cli.home / ".claude" / "projects" / str(workspace).replace("/", "-")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    path.write_text(
        samples.lines([samples.claude("user", "u1", None, f"task {name}", 0, cwd=str(workspace))])
    )
    return path


def failing(number: int, parent: str) -> list[dict[str, Any]]:
    use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "make"}}
    call = samples.claude("assistant", f"a{number}", parent, [use], number, message={"id": f"m{number}"})
    result = samples.tool_result(f"t{number}", "Exit code 2\nno rule", is_error=True)
    return [call, samples.claude("user", f"r{number}", f"a{number}", result, number)]


@pytest.fixture
def no_agent(cli: CommandLine) -> CommandLine:
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "VIBE_HOME", "XDG_DATA_HOME"):
        cli.environment[variable] = ""
    return cli


def test_once_prints_what_is_there_and_ends(no_agent: CommandLine) -> None:
    path = no_agent.workspace / "session.jsonl"
    path.write_text(samples.lines(recordings.codex()))
    ended = no_agent("watch", str(path), "--once")
    assert ended.code == 0
    lines = [line.split(" ", 1)[1] for line in ended.out.splitlines()]
    assert lines[0] == "» fix it"
    assert lines[1].startswith("✗ bash python3 nope.py: exit code 2")
    assert lines[-1] == "■ answered"
    assert ended.err.startswith("agent-tui: watching Codex CLI, fix it (")


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--strict",), 1)])
def test_too_great_a_loss_is_said_and_fails_only_where_that_is_wanted(
    options: tuple[str, ...], code: int, no_agent: CommandLine
) -> None:
    path = no_agent.workspace / "rollout.jsonl"
    script = agent_records.script("k", agent_records.running("make"))
    told = agent_records.printed("k", agent_records.DONE, "no rule")
    path.write_text(samples.lines(agent_records.codex(script, told)))
    ended = no_agent("watch", str(path), "--once", *options)
    assert ended.code == code
    assert "exec" in ended.out
    assert "how it ended is not known" in ended.out
    for stream in (ended.out, ended.err):
        assert "how a call ended is not known for 1 of 1" in stream


def test_secrets_and_control_sequences_do_not_reach_the_log(no_agent: CommandLine) -> None:
    path = no_agent.workspace / "session.jsonl"
    key = "sk-ant-" + "a1B2" * 12
    path.write_text(samples.lines([samples.claude("user", "u1", None, f"use {key} \x1b]0;x\x07", 0)]))
    ended = no_agent("watch", str(path), "--once")
    assert key not in ended.out
    assert "\x1b" not in ended.out


@pytest.mark.process
@pytest.mark.parametrize(("policy", "code"), [("combined", 5), ("hpd", 4)])
def test_until_stuck_ends_where_the_policy_would_ask_or_stop(
    policy: str, code: int, no_agent: CommandLine
) -> None:
    path = claude_session(no_agent, "s1", no_agent.workspace)
    process = no_agent.start("watch", "claude-code", "--until-stuck", "--policy", policy)
    assert process.stdout is not None
    assert "» task s1" in process.stdout.readline()
    parent = "u1"
    for number in range(1, 6):
        with path.open("a") as file:
            file.write(samples.lines(failing(number, parent)))
        parent = f"r{number}"
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err.count("Traceback")) == (code, 0)
    assert "▲" in out


def test_a_session_that_stands_stuck_is_told_at_once(no_agent: CommandLine) -> None:
    path = claude_session(no_agent, "s1", no_agent.workspace)
    records = [*failing(1, "u1"), *failing(2, "r1"), *failing(3, "r2")]
    with path.open("a") as file:
        file.write(samples.lines(records))
    assert no_agent("watch", str(path), "--once", "--until-stuck").code == 5
    goes_on = samples.claude("assistant", "z", "r3", [{"type": "text", "text": "Fixed otherwise."}], 9)
    with path.open("a") as file:
        file.write(samples.lines([goes_on]))
    os.utime(path, (time.time() - 60,) * 2)
    assert no_agent("watch", str(path), "--once", "--until-stuck").code == 0


def test_without_an_argument_the_sessions_of_this_folder_come_first(no_agent: CommandLine) -> None:
    elsewhere = no_agent.home / "elsewhere"
    elsewhere.mkdir()
    claude_session(no_agent, "here", no_agent.workspace)
    claude_session(no_agent, "there", elsewhere)
    old = claude_session(no_agent, "old", no_agent.workspace)
    os.utime(old, (time.time() - 7_200,) * 2)
    ended = no_agent("watch", "--once")
    assert "» task here" in ended.out
    assert "also running" not in ended.err
    ended = no_agent("watch", "--once", "--print", "claude-code")
    assert "» task here" in ended.out


def test_sessions_of_other_folders_are_offered_where_none_runs_here(no_agent: CommandLine) -> None:
    for name in ("one", "two"):
        folder = no_agent.home / name
        folder.mkdir()
        claude_session(no_agent, name, folder)
    ended = no_agent("watch", "--once")
    assert ended.code == 0
    assert "also running: claude-code in" in ended.err


def test_a_running_session_of_opencode_is_found_in_its_database(no_agent: CommandLine) -> None:
    database = no_agent.home / ".local" / "share" / "opencode" / "opencode.db"
    database.parent.mkdir(parents=True)
    recordings.make_database(database)
    for row in recordings.opencode():
        recordings.write_row(database, row)
    ended = no_agent("watch", "opencode", "--once")
    assert "» fix it" in ended.out
    assert "watching OpenCode, A title" in ended.err


def test_a_session_of_ours_keeps_its_verdicts_unless_a_policy_is_named(no_agent: CommandLine) -> None:
    model = no_agent.scenario('[[turns]]\ntext = "done"\n')
    assert no_agent("run", "say done", "--model", model).code == 0
    ended = no_agent("watch", "agent-tui", "--once")
    assert "» say done" in ended.out
    assert ended.out.splitlines()[-1].endswith("■ answered")
    again = no_agent("watch", "agent-tui", "--once", "--policy", "forge")
    assert "» say done" in again.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nope"], "is no file, no folder and no agent"),
        (["codex"], "codex has no session on this machine"),
        ([], "no agent has written a session"),
        (["."], "holds no session"),
        (["gone.jsonl", "--once"], "is not there"),
        (["text.txt", "--once"], "begins with text"),
        (["x", "--policy", "y"], "'y' is not one of"),
    ],
)
def test_what_cannot_be_watched_is_said(words: list[str], says: str, no_agent: CommandLine) -> None:
    if words[:1] == ["text.txt"]:
        (no_agent.workspace / "text.txt").write_text("hello there, this is a text")
    ended = no_agent("watch", *words)
    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err


@pytest.mark.parametrize(
    ("printed", "out", "err", "code"),
    [
        (samples.lines(more_agents.claude_stream()), "■ answered\n", "watching Claude Code stream", 0),
        (samples.lines(more_agents.opencode_stream()), "■ answered\n", "watching OpenCode stream", 0),
        (samples.lines(more_agents.cline_stream()), "■ answered\n", "watching Cline stream", 0),
        (samples.lines(more_agents.cursor()), "■ answered\n", "not known for 4 of 4", 1),
        ("", "", "nothing came through the pipe", 2),
        ("hello\n", "", "begins with text", 2),
    ],
)
def test_what_an_agent_prints_into_a_pipe_is_watched_to_its_end(
    printed: str, out: str, err: str, code: int, no_agent: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as pipe:
        pipe.write(printed)
    monkeypatch.setattr("os.dup", lambda _: reading)
    ended = no_agent("watch", "-", "--print", "--strict")
    assert (ended.code, bool(ended.out)) == (code, bool(out))
    assert out in ended.out
    assert err in ended.err


def test_a_file_that_is_not_there_yet_is_waited_for(no_agent: CommandLine) -> None:
    path = no_agent.workspace / "soon.jsonl"
    process = no_agent.start("watch", str(path), "--print")
    path.write_text(json.dumps(samples.claude("user", "u1", None, "late", 0)) + "\n")
    assert process.stdout is not None
    assert "» late" in process.stdout.readline()
