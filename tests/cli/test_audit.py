"""The audit: every effect of a session, from its journal alone."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import start_session
from tests.store.session_events import stamp
from tui_agent.config.sections import PermissionSettings
from tui_agent.core import events
from tui_agent.runtime.operator import ApprovalReply
from tui_agent.store.audit import effects_of, in_words
from tui_agent.store.journal import read_journal

if TYPE_CHECKING:
    from .conftest import CommandLine


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def test_every_effect_is_listed_with_what_let_it_happen(tmp_path: Path) -> None:
    def call(tool: str, **arguments: object) -> dict[str, object]:
        return {"calls": [{"tool": tool, "args": arguments}]}

    turns = [
        call("read_file", path="old.txt"),
        call("edit_file", path="old.txt", old="one", new="two"),
        call("write_file", path="new.txt", content="new\n"),
        call("bash", command="exit 3"),
        call("bash", command="echo made > by-command.txt"),
        call("bash", command="rm new.txt"),
        {"text": "done"},
    ]
    live = await start_session(
        tmp_path,
        turns,
        operator=ScriptedOperator(approvals=deque([ApprovalReply("session"), ApprovalReply("once")])),
        approve="ask",
        permissions=PermissionSettings(
            allow=("bash(echo *)", "edit_file(by-command.txt)"), deny=("bash(rm *)",)
        ),
        files={"old.txt": "one\n"},
    )
    await live.run()
    await live.close()
    effects = effects_of(read_journal(live.session.folder).events)
    beside = {"seq", "at", "run", "sandbox"}
    shown = [{key: value for key, value in one.items() if key not in beside} for one in effects]
    session = "the operator (session)"
    rules = "allow bash(echo *) (settings); allow edit_file(by-command.txt) (settings)"
    assert [one for one in shown if one["kind"] not in {"model", "changed"}] == [
        {"kind": "approval", "mode": "ask"},
        {
            "kind": "file", "path": "old.txt", "sha256_before": digest("one\n"), "sha256": digest("two\n"),
            "tool": "edit_file", "allowed_by": session,
        },
        {
            "kind": "file", "path": "new.txt", "sha256_before": None, "sha256": digest("new\n"),
            "tool": "write_file", "allowed_by": "allow edit_file(**) (allowed for this session)",
        },
        {
            "kind": "command", "command": "exit 3", "exit_code": 3, "outcome": "failed",
            "allowed_by": "the operator (once)",
        },
        {
            "kind": "command", "command": "echo made > by-command.txt", "exit_code": 0, "outcome": "ok",
            "allowed_by": rules,
        },
        {
            "kind": "refused", "tool": "bash", "input": {"command": "rm new.txt"},
            "reason": "a permission rule forbids it: deny bash(rm *) (settings)",
        },
    ]  # fmt: skip
    assert {"kind": "model", "server": "", "model": "scripted"} in shown
    assert any("by-command.txt" in one["paths"] for one in shown if one["kind"] == "changed")
    lines = in_words(effects)
    assert any("exit 3 -> exit code 3" in line for line in lines)
    assert in_words([]) == ["It did nothing."]


def test_the_audit_of_an_imported_run_claims_nothing_that_the_recording_does_not_say() -> None:
    common = {"call_id": "c", "tool": "Edit", "input": {"file_path": "a.py", "old": "x\ny"}}
    asked = {"call_id": "d", "tool": "book", "input": {"legs": [{"to": "DEN"}], "bags": None}}
    recorded = [
        events.SessionStarted(session_id="s", workspace="/w", source="Claude Code"),
        events.RunStarted(run=1, task="go", policy="", approve=events.Approval.ALL),
        events.ModelCallStarted(iteration=1, model="claude-x"),
        events.ToolStarted(**common),
        events.ToolSucceeded(**common, changed=("a.py",)),
        events.ToolStarted(**asked),
        events.ToolSucceeded(**asked),
        events.ToolRefused(**asked, refusal="denied", reason="denied by the operator"),
        events.ToolStarted(call_id="e", tool="bash", input={"command": "make"}),
        events.ToolSucceeded(call_id="e", tool="bash", input={"command": "make"}),
    ]
    lines = [line.split(maxsplit=2)[2] for line in in_words(effects_of(stamp(recorded)))[1:]]
    assert lines == [
        "model       claude-x",
        "file        a.py (Edit)",
        'call        book legs=[{"to": "DEN"}] bags=null (ok)',
        'refused     book legs=[{"to": "DEN"}] bags=null: denied by the operator',
        "command     make -> ok",
    ]
    here = [*recorded, events.SessionResumed(workspace="/w"), events.RunStarted(run=2, task="on", policy="")]
    assert effects_of(stamp(here))[-1]["kind"] == "approval"


def test_the_audit_of_the_newest_session_is_printed(cli: CommandLine) -> None:
    turns = '[[turns]]\ncalls = [{ tool = "bash", args = { command = "touch a.txt" } }]\n[[turns]]\ntext = "done"\n'
    assert cli("run", "go", "--model", cli.scenario(turns), "--approve", "all").code == 0
    said = cli("sessions", "audit")
    assert said.code == 0
    assert "touch a.txt -> exit code 0" in said.out
    assert "let by --approve all" in said.out
    listed = [json.loads(line) for line in cli("sessions", "audit", "--json").out.splitlines()]
    assert {"command", "model"} <= {one["kind"] for one in listed}
