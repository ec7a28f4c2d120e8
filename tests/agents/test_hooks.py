"""Hooks of another agent, as it runs them: a process for each event, the daemon behind all, journals beside it."""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tui_agent.agents import door
from tui_agent.agents.daemon import LOG, Daemon
from tui_agent.agents.dialect import Moment
from tui_agent.agents.dialects import DIALECTS
from tui_agent.core import events
from tui_agent.formats.importers.judgement import judged
from tui_agent.formats.importers.load import load_transcripts
from tui_agent.formats.importers.normalise import facts
from tui_agent.formats.importers.results import exit_message
from tui_agent.formats.importers.transcript import Call, Result, Said, Status, Step, Transcript, Turn
from tui_agent.playbook.store import Playbook
from tui_agent.store.journal import read_journal
from tui_agent.store.provenance import is_foreign

DOOR = [sys.executable, "-I", "-S", door.__file__]
Hook = Callable[..., dict[str, Any]]


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A short path, since sockets have one. Daemons that begin here end when it is gone."""
    folder = Path(tempfile.mkdtemp(prefix="hooks"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.setenv("AGENT_TUI_STATE_DIR", str(folder / "state"))
    (folder / "work").mkdir()
    monkeypatch.chdir(folder / "work")
    yield folder
    for pid in daemons(folder):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder)


def daemons(home: Path) -> list[int]:
    """Those that serve there: each writes its number into its lock."""
    return [int(lock.read_text()) for lock in (home / "agent-tui").glob("*.lock") if lock.read_text()]


def run(record: object, *arguments: str) -> dict[str, Any]:
    text = record if isinstance(record, bytes) else json.dumps(record).encode()
    done = subprocess.run(
        [*DOOR, *(arguments or ("claude-code",))], input=text, capture_output=True, check=True, timeout=60
    )
    assert done.stderr == b""
    return dict(json.loads(done.stdout)) if done.stdout else {}


def claude(event: str, **fields: Any) -> dict[str, Any]:
    common = {
        "session_id": "s1",
        "cwd": str(Path.cwd()),
        "permission_mode": "default",
        "hook_event_name": event,
    }
    return {**common, **fields}


def bash(command: str, number: int) -> dict[str, Any]:
    return {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": f"t{number}"}


def batch(command: str, number: int, response: str, **fields: Any) -> dict[str, Any]:
    return claude(
        "PostToolBatch", tool_calls=[{**bash(command, number), "tool_response": response}], **fields
    )


FAILS = "Exit code 2\npython3: can't open file 'nope.py': [Errno 2] No such file or directory"


def journals(home: Path) -> list[list[events.Event]]:
    return [read_journal(folder).events for folder in sorted((home / "state" / "sessions").iterdir())]


def context(answer: dict[str, Any]) -> str:
    return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


def decision(answer: dict[str, Any]) -> tuple[str, str]:
    given = answer.get("hookSpecificOutput", {})
    return given.get("permissionDecision", ""), given.get("permissionDecisionReason", "")


def test_a_call_that_fails_three_times_is_noted_then_asked_about_then_refused(home: Path) -> None:
    (Path("note.py")).write_text("")
    assert run(claude("UserPromptSubmit", prompt="fix it")) == {}
    notes = []
    for number in range(1, 4):
        assert run(claude("PreToolUse", **bash("python3 nope.py", number))) == {}
        notes.append(context(run(batch("python3 nope.py", number, FAILS))))
    assert all(note.startswith("<recovery_note>") for note in notes)
    assert ["note.py" in note for note in notes] == [True, True, True]
    assert "second failure" in notes[1]
    asked, why = decision(run(claude("PreToolUse", **bash("python3 nope.py", 4))))
    assert (asked, "failed 3 times" in why, "can't open file" in why) == ("ask", True, True)
    refused, why = decision(run(claude("PreToolUse", **bash("python3 nope.py", 5))))
    assert (refused, "was not executed" in why) == ("deny", True)
    assert context(run(batch("python3 nope.py", 5, why))).count("recovery_note") in (0, 2)
    assert run(claude("PreToolUse", **bash("python3 note.py", 6))) == {}
    run(batch("python3 note.py", 6, ""))
    assert run(claude("Stop", last_assistant_message="Which file do you mean?", stop_hook_active=False)) == {}
    (journal,) = journals(home)
    kinds = [event.type for event in journal]
    assert kinds.count("tool_failed") == 3
    assert [event.refusal for event in journal if isinstance(event, events.ToolRefused)] == ["blocked"]
    assert isinstance(journal[-1], events.RunFinished)
    folder = next((home / "state" / "sessions").iterdir())
    assert is_foreign(folder, folder.parent)


def _edit(number: int) -> dict[str, Any]:
    edit = {"tool_name": "Edit", "tool_input": {"file_path": "a.py", "old_string": "x", "new_string": "y"}}
    return claude("PostToolBatch", tool_calls=[{**edit, "tool_use_id": f"t{number}", "tool_response": "ok"}])


@pytest.mark.parametrize(
    ("checks", "answer", "asked"),
    [
        ("pytest -q", "All tests pass.", "a.py was changed after the last test run"),
        ("ruff check .", "Done. ruff is clean.", "a.py was changed after the last check of the code"),
    ],
)
def test_an_answer_that_no_result_shows_is_sent_back_once_and_has_its_receipts(
    home: Path, checks: str, answer: str, asked: str
) -> None:
    said = "7 passed in 0.10s" if "pytest" in checks else "All checks passed!"
    run(claude("UserPromptSubmit", prompt="fix it"))
    run(batch(checks, 1, said))
    run(_edit(2))
    sent = run(claude("Stop", stop_hook_active=False, last_assistant_message=answer))
    assert (sent["decision"], asked in sent["reason"]) == ("block", True)
    assert run(claude("Stop", stop_hook_active=True, last_assistant_message=answer)) == {}
    (journal,) = journals(home)
    (ended,) = [event for event in journal if isinstance(event, events.RunFinished)]
    assert [one.standing for one in ended.receipts] == ["stale"]
    assert f"{checks}: {said}, step 1, 1 change since" in [one.in_words for one in ended.receipts]


def test_nobody_is_asked_where_nobody_is_and_nothing_is_refused_where_only_notes_are_wanted(
    home: Path,
) -> None:
    alone = {"permission_mode": "bypassPermissions"}
    run(claude("UserPromptSubmit", prompt="fix it", **alone))
    for number in range(1, 4):
        run(batch("python3 nope.py", number, FAILS, **alone))
    again = claude("PreToolUse", **bash("python3 nope.py", 4), **alone)
    assert run(again, "claude-code", "note") == {}
    assert run(again, "claude-code", "off") == {}
    assert decision(run(again))[0] == "deny"
    gave_up = claude("Stop", last_assistant_message="I gave up.", stop_hook_active=False, **alone)
    assert run(gave_up)["decision"] == "block"
    assert run({**gave_up, "stop_hook_active": True}) == {}


def test_the_opencode_plugin_is_given_notes_and_refusals(home: Path) -> None:
    def told(event: str, number: int, **fields: Any) -> dict[str, Any]:
        call = {"tool_name": "bash", "tool_input": {"command": "make"}, "tool_use_id": f"c{number}"}
        common = {"hook_event_name": event, "session_id": "s", "agent_id": "", "cwd": str(Path.cwd())}
        return run({**common, **call, **fields}, "opencode")

    ended = {"tool_output": "no rule", "tool_metadata": {"exit": 2, "output": "no rule"}}
    for number in range(3):
        assert told("tool.execute.before", number) == {}
        note = told("tool.execute.after", number, **ended).get("note", "")
        assert note.startswith("<recovery_note>") is (number > 0), "the first error says it all"
    assert "failed 3 times" in told("tool.execute.before", 4)["refuse"]
    missing = {"tool_name": "read", "error": "File not found: x.txt"}
    assert ["note" in told("tool.execute.error", number, **missing) for number in (5, 6)] == [False, True]
    unknown = {"tool_name": "invalid", "tool_output": "unavailable tool 'x'", "tool_metadata": {}}
    assert "note" in told("tool.execute.after", 7, **unknown)
    assert told("tool.execute.after", 8, tool_name="grep", tool_output="No files found") == {}
    (journal,) = journals(home)
    failed = [event.failure.kind for event in journal if isinstance(event, events.ToolFailed)]
    assert failed == [*["tool_execution"] * 5, "unknown_tool"]


COPILOT = {"session_id": "s", "timestamp": "2026-11-24T12:43:17.303Z"}
CURSOR = {"conversation_id": "s", "generation_id": "g", "cursor_version": "2026.09.02", "model": "m"}


def copilot(event: str, **fields: Any) -> dict[str, Any]:
    """As version 1.0.102 sent them."""
    return {"hook_event_name": event, **COPILOT, "cwd": str(Path.cwd()), **fields}


def cursor(event: str, **fields: Any) -> dict[str, Any]:
    """As its documentation has them."""
    return {"hook_event_name": event, **CURSOR, "workspace_roots": [str(Path.cwd())], **fields}


MAKE = {"command": "make"}


def test_copilot_is_answered_once_also_where_it_runs_the_hooks_of_claude_code(home: Path) -> None:
    transcript = home / "events.jsonl"
    transcript.write_text(
        '{"type": "assistant.message", "data": {"content": "I gave up."}}\n{"type": "assistant.turn_end", "data": {}}\n'
    )
    trailer = "no rule\n<shellId: 0 completed with exit code 2>"
    result = {"tool_result": {"result_type": "success", "text_result_for_llm": trailer}}
    told = []
    for agent in ("claude-code", "copilot"):
        run(copilot("UserPromptSubmit", prompt="fix it"), agent)
        sent = [
            copilot("PostToolUse", tool_name=name, tool_input=MAKE, **result)
            for name in ("bash", "Bash", "Bash")
        ]
        sent += [copilot("PreToolUse", tool_name=name, tool_input=MAKE) for name in ("Bash", "bash")]
        told += [run(record, agent) for record in sent]
    assert told[:6] == [{}] * 6
    assert all(answer["additionalContext"].startswith("<recovery_note>") for answer in told[6:8])
    assert [answer["permissionDecision"] for answer in told[8:]] == ["ask", "deny"]
    stop = copilot("Stop", transcript_path=str(transcript), stop_reason="end_turn", stop_hook_active=False)
    run(stop, "copilot")
    (journal,) = journals(home)
    assert journal[-1].answer == "I gave up." if isinstance(journal[-1], events.RunFinished) else False
    failed = [event for event in journal if isinstance(event, events.ToolFailed)]
    assert [(event.tool, event.content) for event in failed] == [("Bash", "no rule")] * 3


def test_cursor_is_answered_in_its_own_form(home: Path) -> None:
    output = json.dumps({"exitCode": 2, "stdout": "", "stderr": "no rule"})
    shell = {"tool_name": "Shell", "tool_input": MAKE, "tool_use_id": "c"}
    run(cursor("beforeSubmitPrompt", prompt="fix it"), "cursor")
    for number in range(3):
        assert run(cursor("preToolUse", **shell), "cursor") == {}
        answer = run(cursor("postToolUse", **shell, tool_output=output), "cursor")
        assert list(answer) == (["additional_context"] if number else [])
    refused = run(cursor("preToolUse", **shell), "cursor")
    assert (refused["permission"], "failed 3 times" in refused["agent_message"]) == ("deny", True)
    denied = cursor("postToolUseFailure", **shell, failure_type="permission_denied", error_message="denied")
    assert run(denied, "cursor") == {}
    read = {"tool_name": "Read", "tool_input": {"path": "x"}}
    failure = cursor("postToolUseFailure", **read, failure_type="error", error_message="no such file")
    assert [list(run({**failure, "tool_use_id": f"r{number}"}, "cursor")) for number in range(2)] == [
        [],
        ["additional_context"],
    ]
    assert run(cursor("PostToolUseFailure", **read, error="no such file"), "claude-code") == {}
    transcript = home / "transcript.jsonl"
    transcript.write_text(
        '{"role": "assistant", "message": {"content": [{"type": "text", "text": "I gave up."}]}}'
    )
    stop = cursor("stop", loop_count=0, transcript_path=str(transcript))
    assert "followup_message" in run({**stop, "status": "completed"}, "cursor")
    assert run({**stop, "status": "completed", "loop_count": 1}, "cursor") == {}
    (journal,) = journals(home)
    assert sum(isinstance(event, events.ToolFailed) for event in journal) == 5
    assert [event.refusal for event in journal if isinstance(event, events.ToolRefused)] == ["blocked"]
    assert isinstance(journal[-1], events.RunFinished)


def test_an_event_without_a_name_is_told_by_its_form(home: Path) -> None:
    for record in (
        claude("UserPromptSubmit", prompt="x"),
        copilot("UserPromptSubmit", prompt="x"),
        cursor("beforeSubmitPrompt", prompt="x"),
    ):
        assert run(record, "") == {}
    heard = {path.stem for path in (home / "state" / "hooks").glob("*.heard")}
    assert heard == {"claude-code", "copilot", "cursor"}


def test_what_recovered_a_failure_is_learned_for_the_workspace_when_the_run_ends(home: Path) -> None:
    run(claude("UserPromptSubmit", prompt="fix it"))
    missing = "Exit code 127\nbash: line 1: checkall: command not found"
    run(batch("checkall src/", 1, missing))
    run(batch("ls bin", 2, "check"))
    run(batch("bin/check src/", 3, "all is well"))
    run(claude("Stop", stop_hook_active=False, last_assistant_message="Done."))
    playbook = Playbook(home / "state", Path.cwd())
    ends = time.monotonic() + 60
    while not playbook.workspace.path.exists() and time.monotonic() < ends:
        time.sleep(0.02)
    assert [one.repair.name for one in playbook.workspace.book().offered(0.0)] == ["bin/check"]


def test_what_a_person_changed_lets_a_refused_call_run(home: Path) -> None:
    for number in range(1, 4):
        run(batch("make", number, "Exit code 2\nmake: *** No rule to make target 'all'.  Stop."))
    again = claude("PreToolUse", **bash("make", 4))
    assert decision(run(again))[0] == "ask"
    later = time.time() + 5
    Path("Makefile").write_text("all:\n")
    os.utime("Makefile", (later, later))
    assert run(again) == {}


def test_what_is_kept_of_the_session_is_no_change_of_a_workspace_that_holds_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    own = home / ".claude" / "projects" / "p" / "s1.jsonl"
    own.parent.mkdir(parents=True)
    for number in range(1, 4):
        run(batch("make", number, "Exit code 2\nmake: *** No rule to make target 'all'.  Stop."))
    later = time.time() + 5
    for path in (own, *(home / "state").rglob("*.jsonl")):
        path.touch()
        os.utime(path, (later, later))
    again = claude("PreToolUse", **bash("make", 4))
    assert decision(run(again))[0] == "ask"
    Path("Makefile").write_text("all:\n")
    os.utime("Makefile", (later, later))
    assert run(again) == {}


@pytest.mark.parametrize("first", ["bypassPermissions", "default"])
def test_no_answer_is_promised_where_nobody_is_there_and_no_prompt_was_heard(first: str, home: Path) -> None:
    alone = {"permission_mode": "bypassPermissions"}
    for number in range(1, 4):
        run(batch("make", number, "Exit code 2\nno rule", **(alone | {"permission_mode": first})))
    refused, why = decision(run(claude("PreToolUse", **bash("make", 4), **alone)))
    assert (refused, "operator" in why) == ("deny", False)


def test_calls_that_were_rejected_before_they_ran_and_empty_searches(home: Path) -> None:
    edit = {"tool_name": "Edit", "tool_input": {"file_path": "a.py", "old_string": "x", "new_string": "y"}}
    wrong = {
        **edit,
        "tool_use_id": "e",
        "tool_response": "<tool_use_error>String to replace not found</tool_use_error>",
    }
    assert [bool(context(run(claude("PostToolBatch", tool_calls=[wrong])))) for _ in range(2)] == [
        False,
        True,
    ]
    searched = {
        "tool_name": "Grep",
        "tool_input": {"pattern": "x"},
        "tool_use_id": "g",
        "tool_response": "No matches found",
    }
    assert run(claude("PostToolBatch", tool_calls=[searched])) == {}


def test_a_sub_agent_is_a_session_of_its_own(home: Path) -> None:
    for number in range(1, 4):
        run(batch("make", number, "Exit code 2\nno rule", agent_id="sub1"))
    assert run(claude("PreToolUse", **bash("make", 4))) == {}
    assert decision(run(claude("PreToolUse", **bash("make", 5), agent_id="sub1")))[0] == "ask"
    assert len(journals(home)) == 2


@pytest.mark.process
@pytest.mark.parametrize("number", [60, pytest.param(200, marks=pytest.mark.slow)])
def test_a_daemon_that_is_killed_and_hooks_that_come_at_once_lose_nothing(home: Path, number: int) -> None:
    for made in range(1, 3):
        run(batch("make", made, "Exit code 2\nno rule"))
    killed: set[int] = set()
    many = []
    for made in range(number):
        one = subprocess.Popen([*DOOR, "claude-code"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert one.stdin is not None
        one.stdin.write(json.dumps(batch(f"echo {made}", 100 + made, f"{made}")).encode())
        one.stdin.close()
        many.append(one)
        if made % 20 == 10:
            for pid in set(daemons(home)) - killed:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
    assert [one.wait(60) for one in many] == [0] * number
    assert killed
    assert len(daemons(home)) == 1
    run(batch("make", 3, "Exit code 2\nno rule"))
    assert decision(run(claude("PreToolUse", **bash("make", 4))))[0] == "ask"
    (journal,) = journals(home)
    ended = [event.call_id for event in journal if isinstance(event, events.ToolSucceeded)]
    assert sorted(ended) == sorted(f"t{100 + made}" for made in range(number))
    assert [event.seq for event in journal] == list(range(1, len(journal) + 1))


def test_an_event_that_was_recorded_as_its_daemon_died_is_answered_and_not_recorded_again(home: Path) -> None:
    words = ["claude-code", "refuse", "", str(Path.cwd()), f"AGENT_TUI_STATE_DIR={home / 'state'}"]
    failed = json.dumps(batch("make", 1, "Exit code 2\nno rule")).encode()
    first = Daemon()
    asked = json.dumps(claude("UserPromptSubmit", prompt="fix it")).encode()
    first.answer(words, asked)
    first.answer(words, json.dumps(batch("make", 0, "Exit code 2\nno rule")).encode())
    note = first.answer(words, failed)
    first.close()
    second = Daemon()
    assert second.answer(words, asked, again=True) == {}
    assert (second.answer(words, failed, again=True), bool(note)) == (note, True)
    (journal,) = journals(home)
    assert [event.type for event in journal].count("tool_failed") == 2
    assert [event.type for event in journal].count("run_started") == 1


def test_what_a_full_disk_does_not_take_is_written_when_there_is_room(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["claude-code", "refuse", "", str(Path.cwd()), f"AGENT_TUI_STATE_DIR={home / 'state'}"]
    daemon, write, room = Daemon(), os.write, [700]

    def full(descriptor: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(28, "No space left on device")
        taken = write(descriptor, data[: room[0]])
        room[0] -= taken
        return taken

    monkeypatch.setattr(os, "write", full)
    for number in range(1, 4):
        answer = daemon.answer(words, json.dumps(batch("make", number, "Exit code 2\nno rule")).encode())
        assert bool(answer) is (number > 1)
    again = json.dumps(claude("PreToolUse", **bash("make", 4))).encode()
    assert decision(daemon.answer(words, again))[0] == "ask"
    room[0] = 1 << 20
    daemon.answer(words, json.dumps(batch("make", 5, "")).encode())
    (journal,) = journals(home)
    assert sum(isinstance(event, events.ToolFailed) for event in journal) == 3
    assert [event.seq for event in journal] == list(range(1, len(journal) + 1))


def test_no_event_breaks_an_agent_and_errors_are_in_the_log(home: Path) -> None:
    for nonsense in (b"", b"{", b"[]", b"null", b'{"hook_event_name": "Stop"}', b"\xff\x00", b'{"a":' * 5000):
        assert run(nonsense) == {}
    assert run({"hook_event_name": "Stop", "session_id": "x"}, "no-such-agent") == {}
    assert "no-such-agent" in (home / "state" / LOG).read_text()


def test_where_the_runtime_folder_is_not_usable_a_private_one_at_home_is(home: Path) -> None:
    elsewhere = home / "elsewhere"
    elsewhere.mkdir(0o700)
    environment = {"XDG_RUNTIME_DIR": "/proc", "HOME": str(elsewhere)}
    done = subprocess.run([*DOOR, "x"], input=b"{}", env=environment, check=False, timeout=60)
    assert done.returncode == 0
    folder = elsewhere / ".cache" / "agent-tui-run"
    assert folder.stat().st_mode & 0o777 == 0o700
    for lock in folder.glob("*.lock"):
        os.kill(int(lock.read_text()), signal.SIGKILL)


ONE = {"tool_name": "Bash", "tool_input": MAKE, "tool_use_id": "t1"}
HERE = {"session_id": "s", "cwd": "/"}
SEEDS: dict[str, list[dict[str, Any]]] = {
    "claude-code": [
        {"hook_event_name": "UserPromptSubmit", **HERE, "prompt": "x"},
        {"hook_event_name": "PreToolUse", **HERE, **ONE},
        {"hook_event_name": "PostToolUseFailure", **HERE, **ONE, "error": "Exit code 2"},
        {
            "hook_event_name": "PostToolBatch",
            **HERE,
            "tool_calls": [{**ONE, "tool_response": "Exit code 2\nno"}],
        },
        {"hook_event_name": "Stop", **HERE, "last_assistant_message": "done"},
        {"hook_event_name": "StopFailure", **HERE, "error": "overloaded"},
        {"hook_event_name": "Notification", **HERE, "message": "hi"},
        {"hook_event_name": "SessionEnd", **HERE, "reason": "other"},
    ],
    "codex": [
        {
            "hook_event_name": "PostToolUse",
            **HERE,
            **ONE,
            "tool_response": "no",
            "transcript_path": "/etc/passwd",
        },
        {"hook_event_name": "Stop", **HERE, "last_assistant_message": "done", "stop_hook_active": False},
    ],
    "gemini-cli": [
        {"hook_event_name": "BeforeTool", **HERE, **ONE},
        {"hook_event_name": "AfterTool", **HERE, **ONE, "tool_response": {"llmContent": "Exit Code: 2"}},
        {
            "hook_event_name": "AfterTool",
            **HERE,
            **ONE,
            "tool_response": {"error": {"message": "no", "type": "x"}},
        },
        {"hook_event_name": "AfterAgent", **HERE, "prompt": "x", "prompt_response": "done"},
    ],
    "copilot": [
        {"hook_event_name": "PreToolUse", **HERE, **COPILOT, **ONE},
        {
            "hook_event_name": "PostToolUse",
            **HERE,
            **COPILOT,
            **ONE,
            "tool_result": {"text_result_for_llm": "no"},
        },
        {"hook_event_name": "PostToolUseFailure", **HERE, **COPILOT, **ONE, "error": "no"},
        {"hook_event_name": "Stop", **HERE, **COPILOT, "transcript_path": "/etc/passwd"},
    ],
    "cursor": [
        {"hook_event_name": "preToolUse", **CURSOR, **ONE, "workspace_roots": ["/"]},
        {
            "hook_event_name": "postToolUse",
            **CURSOR,
            **ONE,
            "tool_output": '{"exitCode": 2, "stderr": "no"}',
        },
        {
            "hook_event_name": "postToolUseFailure",
            **CURSOR,
            **ONE,
            "error_message": "no",
            "failure_type": "error",
        },
        {"hook_event_name": "stop", **CURSOR, "loop_count": 0, "status": "completed", "transcript_path": "/"},
    ],
    "mistral-vibe": [
        {"hook_event_name": "pre_tool", **HERE, **ONE, "tool_call_id": "t1"},
        {"hook_event_name": "post_tool", **HERE, **ONE, "tool_status": "failure", "tool_error": "no"},
        {"hook_event_name": "post_tool", **HERE, **ONE, "tool_output": {"returncode": 2, "stderr": "no"}},
        {"hook_event_name": "post_agent", **HERE},
    ],
    "opencode": [
        {"hook_event_name": "chat.message", **HERE, "prompt": "x"},
        {"hook_event_name": "tool.execute.before", **HERE, **ONE},
        {
            "hook_event_name": "tool.execute.after",
            **HERE,
            **ONE,
            "tool_output": "no",
            "tool_metadata": {"exit": 2},
        },
        {"hook_event_name": "tool.execute.error", **HERE, **ONE, "error": "no"},
        {"hook_event_name": "session.error", **HERE, "error": "Overloaded"},
    ],
    "qwen-code": [
        {"hook_event_name": "PreToolUse", **HERE, **ONE, "permission_mode": "yolo"},
        {"hook_event_name": "PostToolUse", **HERE, **ONE, "tool_response": {"llmContent": "Exit Code: 2"}},
        {"hook_event_name": "PostToolUseFailure", **HERE, **ONE, "error": "Exit Code: 2"},
        {"hook_event_name": "Stop", **HERE, "last_assistant_message": "done", "stop_hook_active": False},
        {"hook_event_name": "StopFailure", **HERE, "error": "loop"},
    ],
    "kimi-code": [
        {"hook_event_name": "UserPromptSubmit", **HERE, "prompt": [{"type": "text", "text": "x"}]},
        {"hook_event_name": "PreToolUse", **HERE, **ONE, "tool_call_id": "t1"},
        {"hook_event_name": "PostToolUse", **HERE, **ONE, "tool_output": "done"},
        {"hook_event_name": "PostToolUseFailure", **HERE, **ONE, "error": {"message": "no"}},
        {"hook_event_name": "Stop", **HERE, "stop_hook_active": False},
    ],
}
ODD: list[Any] = [
    None,
    True,
    -1,
    2**70,
    1e308,
    "",
    "\ud800",
    "x" * 5000,
    [],
    {},
    [{}],
    {"a": {"b": []}},
    "\x1b[31m",
    '{"exitCode": 1e999}',
    "../../../etc",
]


def _told(home: Path, *sent: dict[str, Any]) -> list[str]:
    """What Claude Code is told at each of the events, by its first words."""
    daemon, answers = Daemon(), []
    words = ["claude-code", "refuse", "combined", "", f"AGENT_TUI_STATE_DIR={home / 'state'}"]
    common = {
        "session_id": "s",
        "cwd": str(home),
        "permission_mode": "bypassPermissions",
        "tool_name": "Bash",
    }
    for number, event in enumerate(sent):
        record = {**common, "tool_input": {"command": "make"}, "tool_use_id": f"t{number // 2}", **event}
        given = daemon.answer(words, json.dumps(record).encode()).get("hookSpecificOutput", {})
        answers.append(given.get("additionalContext", given.get("permissionDecision", "")))
    return answers


BEFORE = {"hook_event_name": "PreToolUse"}
FAILED = {"hook_event_name": "PostToolUseFailure", "error": "Exit code 2\nno rule"}


def test_failures_count_though_no_event_says_that_the_reply_is_over(home: Path) -> None:
    answers = _told(home, *[BEFORE, FAILED] * 3, BEFORE, {"hook_event_name": "Stop"})
    assert ["second failure" in one for one in answers] == [False] * 3 + [True] + [False] * 4
    assert answers[6] == "deny"
    failures = [event for event in journals(home)[0] if isinstance(event, events.ToolFailed)]
    assert len(failures) == 3


def test_what_began_and_did_not_fail_has_worked_if_failures_alone_are_told(home: Path) -> None:
    other = {**BEFORE, "tool_input": {"command": "ls"}}
    _told(home, BEFORE, FAILED, other, {"hook_event_name": "Notification"}, BEFORE, FAILED, BEFORE)
    ends = [event.type for event in journals(home)[0] if isinstance(event, events.ToolResult)]
    assert ends == ["tool_failed", "tool_succeeded", "tool_failed"]


def test_a_failure_before_the_first_batch_is_over_counts_once_and_its_note_is_not_lost(home: Path) -> None:
    make = {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_response": "Exit code 2"}
    look = {"tool_name": "Read", "tool_input": {"file_path": "a"}, "tool_response": "print(1)"}
    calls = [one | {"tool_use_id": f"t{number}"} for number, one in enumerate((make, make, look))]
    read = {**BEFORE, "tool_name": "Read", "tool_input": {"file_path": "a"}}
    batch = {"hook_event_name": "PostToolBatch", "tool_calls": calls}
    answers = _told(home, BEFORE, FAILED, BEFORE, FAILED, read, batch)
    assert ["second failure" in one for one in answers].count(True) == 1
    ends = [event.type for event in journals(home)[0] if isinstance(event, events.ToolResult)]
    assert ends == ["tool_failed", "tool_failed", "tool_succeeded"]


def test_results_of_calls_that_come_as_an_empty_prompt_are_no_words_of_the_operator(home: Path) -> None:
    prompt = {"hook_event_name": "UserPromptSubmit"}
    steps = [
        {**event, "tool_use_id": f"t{number}"}
        for number in range(3)
        for event in (BEFORE, FAILED, {**prompt, "prompt": ""})
    ]
    answers = _told(home, {**prompt, "prompt": "fix it"}, *steps, BEFORE)
    assert answers[-1] == "deny"
    asked = [
        event for event in journals(home)[0] if isinstance(event, events.RunStarted | events.OperatorSpoke)
    ]
    assert [event.type for event in asked] == ["run_started"]


def test_every_agent_has_seeds() -> None:
    assert set(SEEDS) == set(DIALECTS)


@pytest.mark.parametrize("number", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_mutated_events_are_answered_or_left(home: Path, number: int) -> None:
    """What is answered is an object, and the journals stay whole."""
    daemon, source = Daemon(), random.Random(7)
    places = [str(Path.cwd()), f"AGENT_TUI_STATE_DIR={home / 'state'}"]
    for _ in range(number):
        agent = source.choice(list(SEEDS))
        record = copy.deepcopy(source.choice(SEEDS[agent]))
        for _ in range(source.randrange(4)):
            target: Any = record
            while isinstance(target, dict) and source.random() < 0.7:
                inner = [value for value in target.values() if isinstance(value, dict | list) and value]
                if not inner:
                    break
                target = source.choice(inner)
            keys = list(target) if isinstance(target, dict) else range(len(target))
            if keys:
                target[source.choice(keys)] = copy.deepcopy(source.choice(ODD))
        words = [source.choice([agent, agent, ""]), source.choice(["refuse", "note", "off"]), "", *places]
        answer = daemon.answer(words, json.dumps(record).encode(), again=source.random() < 0.1)
        assert isinstance(answer, dict)
        json.dumps(answer).encode()
    for journal in journals(home):
        assert [event.seq for event in journal] == list(range(1, len(journal) + 1))


@pytest.mark.parametrize(
    "record",
    [
        {"hook_event_name": "post_tool", "session_id": "s", "tool_output": {"returncode": -9, "stdout": "x"}},
        {"hook_event_name": "postToolUse", "conversation_id": "s", "tool_output": '{"exitCode": -9}'},
    ],
    ids=["mistral-vibe", "cursor"],
)
def test_a_command_that_a_signal_ended_has_failed(record: dict[str, Any]) -> None:
    agent = "mistral-vibe" if "session_id" in record else "cursor"
    heard = DIALECTS[agent].read({"tool_name": "bash", "tool_input": {"command": "make"}, **record})
    assert heard is not None
    result = heard.calls[0][1]
    assert result is not None
    assert (result.status, result.message.splitlines()[0]) == ("failed", "exit code -9")


FORMS: dict[str, tuple[str, Callable[[int, str], dict[str, Any]]]] = {
    "claude-code": (
        "PostToolBatch",
        lambda code, out: {"tool_response": f"Exit code {code}\n{out}" if code else out},
    ),
    "codex": (
        "PostToolUse",
        lambda code, out: {"tool_response": f"Process exited with code {code}\nOutput:\n{out}"},
    ),
    "gemini-cli": (
        "AfterTool",
        lambda code, out: {"tool_response": {"llmContent": f"Output: {out}\nExit Code: {code}"}},
    ),
    "copilot": (
        "PostToolUse",
        lambda code, out: {"tool_result": {"text_result_for_llm": f"{out}\n<exited with exit code {code}>"}},
    ),
    "cursor": (
        "postToolUse",
        lambda code, out: {"tool_output": json.dumps({"exitCode": code, "stdout": out})},
    ),
    "mistral-vibe": (
        "post_tool",
        lambda code, out: {"tool_status": "success", "tool_output": {"returncode": code, "stdout": out}},
    ),
    "opencode": (
        "tool.execute.after",
        lambda code, out: {"tool_output": out, "tool_metadata": {"exit": code}},
    ),
    "qwen-code": (
        "PostToolUse",
        lambda code, out: {"tool_response": {"llmContent": f"Output: {out}\nExit Code: {code}"}},
    ),
    "kimi-code": (
        "PostToolUseFailure",
        lambda code, out: (
            {"error": {"message": f"{out}\nCommand failed with exit code: {code}."}}
            if code
            else {"hook_event_name": "PostToolUse", "tool_output": out}
        ),
    ),
}
"""How each agent tells the end of a command: the event, and what it says of exit code and output."""
COMMANDS = ["make", "make test", "pytest -q", "cat notes.txt", "sed -i s/a/b/ app.py", "python3 app.py"]


@pytest.mark.parametrize("agent", FORMS)
def test_a_run_is_judged_as_its_recording_is(home: Path, agent: str) -> None:
    dialect, daemon = DIALECTS[agent], Daemon()
    event, form = FORMS[agent]
    words = [agent, "off", "combined", "", f"AGENT_TUI_STATE_DIR={home / 'state'}"]
    mode = "yolo" if agent == "qwen-code" else "bypassPermissions"
    common = {"permission_mode": mode, dialect.fields.session: "s"}
    common |= {"timestamp": "now"} if agent == "copilot" else {}
    common.pop("permission_mode" if agent == "copilot" else "", None)
    prompt = next((name for name, moment in dialect.events.items() if moment is Moment.PROMPT), "")
    if prompt:
        asked = {dialect.fields.event: prompt, **common, "prompt": "fix it"}
        daemon.answer(words, json.dumps(asked).encode())
    source = random.Random(agent)
    steps: list[Step] = [Said("fix it", 1.0)] if prompt else []
    for number in range(60):
        command = source.choice(COMMANDS[: 2 if number % 20 > 11 else 6])
        code = source.choice([0, 2]) if command in COMMANDS[3:] else 2
        out = f"{command}: {'no rule' if code else 'done'} {number if not code else ''}".strip()
        told = {"tool_name": "Bash", "tool_input": {"command": command}, dialect.fields.call: f"c{number}"}
        told |= form(code, out)
        record = {
            dialect.fields.event: event,
            **common,
            **({"tool_calls": [told]} if dialect.fields.batch else told),
        }
        daemon.answer(words, json.dumps(record).encode())
        call = Call(f"c{number}", "Bash", json.dumps({"command": command}), {"command": command})
        ended = Result("failed", out, message=exit_message(code, out)) if code else Result("ok", out)
        steps.append(Turn(calls=[call], results={call.id: ended}))
    recording = facts(Transcript(steps), session_id="s", source="", summary="", base_at=1.0)
    folder = next((home / "state" / "sessions").iterdir())
    # Copilot CLI does not say whether somebody is there.
    judgement = _verdicts(judged(recording, "combined", operator_present=agent == "copilot"))
    assert _verdicts(read_journal(folder).events) == judgement
    assert len({rule for _, rule in judgement}) > 2


@pytest.mark.parametrize("status", ["failed", "denied"])
@pytest.mark.parametrize("head", ["", "Command blocked by PreToolUse hook: ", "Denied by preToolUse hook: "])
def test_a_refusal_of_ours_is_nobody_elses_in_any_recording(status: Status, head: str) -> None:
    call = Call("c", "bash", "{}", {})
    refused = Result(status, "", message=f"{head}This call of bash was not executed: it failed 3 times.")
    steps: list[Step] = [Said("fix it"), Turn(calls=[call], results={"c": refused})]
    recording = facts(Transcript(steps), session_id="s", source="", summary="", base_at=1.0)
    assert [event.refusal for event in recording if isinstance(event, events.ToolRefused)] == ["blocked"]
    assert not any(isinstance(event, events.ToolStarted) for event in recording)


RUNS = Path(__file__).resolve().parents[3] / "shared" / "labelled-runs" / "swebench-gemini-3-pro"


@pytest.mark.skipif(not RUNS.is_dir(), reason="the recorded runs are not here")
def test_recorded_runs_are_judged_as_analyze_judges_them(home: Path) -> None:
    daemon = Daemon()
    words = ["claude-code", "off", "combined", str(Path.cwd()), f"AGENT_TUI_STATE_DIR={home / 'state'}"]
    for path in sorted(RUNS.iterdir())[:12]:
        recorded = load_transcripts(path)[0].events
        alone = {"session_id": path.name, "permission_mode": "bypassPermissions"}
        heard: list[dict[str, Any]] = []
        for event in recorded:
            match event:
                case events.RunStarted(task=task):
                    heard.append(claude("UserPromptSubmit", prompt=task, **alone))
                case events.IterationStarted():
                    ended: list[dict[str, Any]] = []
                case events.ToolResult():
                    failed = isinstance(event, events.ToolFailed)
                    text = event.failure.message if isinstance(event, events.ToolFailed) else event.content
                    marked = f"<tool_use_error>{text}</tool_use_error>" if failed else text
                    ended.append(
                        {
                            "tool_name": event.tool,
                            "tool_input": event.input,
                            "tool_use_id": event.call_id,
                            "tool_response": marked,
                        }
                    )
                case events.IterationFinished() if ended:
                    heard.append(claude("PostToolBatch", tool_calls=ended, **alone))
        for record in heard:
            daemon.answer(words, json.dumps(record).encode())
        whole = judged(recorded, "combined", operator_present=False)
        folder = next((home / "state" / "sessions").iterdir())
        assert _verdicts(read_journal(folder).events) == _verdicts(whole)
        shutil.rmtree(folder)


def _verdicts(journal: list[events.Event]) -> list[tuple[str, str]]:
    return [
        (event.level, event.rule)
        for event in journal
        if isinstance(event, events.VerdictReached) and event.rule
    ]
