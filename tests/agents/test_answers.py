"""An answer that somebody gives in a console that watches reaches the agent with its next hook, once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agents.test_hooks import FAILS, bash, batch, claude, context, decision, home, journals, run
from tui_agent.agents.answers import conversation, leave
from tui_agent.agents.daemon import Daemon
from tui_agent.core import events

__all__ = ["home"]


def begin(home: Path, *arguments: str) -> None:
    """A prompt is heard. Where the machine is busy the first hooks may give up before a daemon is there."""
    for _ in range(20):
        run(claude("UserPromptSubmit", prompt="fix it"), *arguments)
        if conversation(home / "state" / "sessions", "claude-code", "s1") is not None:
            return


def left(home: Path, text: str) -> None:
    folder = conversation(home / "state" / "sessions", "claude-code", "s1")
    assert folder is not None, "a hook of this conversation was heard"
    leave(folder, text)


def test_it_comes_as_a_note_with_the_next_results_and_is_kept(home: Path) -> None:
    begin(home)
    left(home, "use ninja")
    left(home, "and be quick")
    note = context(run(batch("ls", 1, "a.py")))
    assert "The operator answers: use ninja\nand be quick" in note
    assert "operator" not in context(run(batch("ls", 2, "a.py")))
    spoken = [event.text for event in journals(home)[0] if isinstance(event, events.OperatorSpoke)]
    assert spoken[-1] == "use ninja\nand be quick"


def test_it_is_the_reason_of_a_refusal_where_the_call_would_be_asked_about(home: Path) -> None:
    begin(home)
    for number in range(1, 4):
        run(batch("python3 nope.py", number, FAILS))
    left(home, "the file is tests/yes.py")
    answer = decision(run(claude("PreToolUse", **bash("python3 nope.py", 4))))
    assert answer == ("deny", "The operator answers: the file is tests/yes.py")


def test_kimi_code_which_does_not_say_what_its_model_said_goes_on_with_it_alone(home: Path) -> None:
    common = {"session_id": "s1", "cwd": str(home), "tool_name": "Bash", "tool_input": {"command": "make"}}
    daemon = Daemon()

    def told(event: str, **more: Any) -> Any:
        words = ["kimi-code", "refuse", "combined", "", f"AGENT_TUI_STATE_DIR={home / 'state'}"]
        record = {"hook_event_name": event, **common, **more}
        return daemon.answer(words, json.dumps(record).encode()).get("hookSpecificOutput", {})

    told("UserPromptSubmit", prompt="fix it")
    told("PostToolUseFailure", tool_call_id="c1", error={"message": "Command failed with exit code: 2."})
    assert told("Stop", stop_hook_active=False) == {}
    folder = conversation(home / "state" / "sessions", "kimi-code", "s1")
    assert folder is not None
    leave(folder, "use ninja")
    answer = told("Stop", stop_hook_active=False)
    assert (answer["permissionDecision"], "use ninja" in answer["permissionDecisionReason"]) == ("deny", True)
    assert told("Stop", stop_hook_active=False) == {}


def test_where_only_is_recorded_it_waits(home: Path) -> None:
    begin(home, "claude-code", "off")
    left(home, "use ninja")
    assert run(batch("ls", 1, "a.py"), "claude-code", "off") == {}
    assert "use ninja" in context(run(batch("ls", 2, "a.py")))


@pytest.mark.parametrize("session", ["", "other"])
def test_a_conversation_of_which_nothing_was_heard_has_no_place(session: str, tmp_path: Path) -> None:
    assert conversation(tmp_path, "claude-code", session) is None
