"""Attacks on plan mode: each way by which something could be changed while nothing may be."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections import deque
from pathlib import Path
from typing import Any

from tests.adversarial.attack import attack
from tests.mcp.conftest import own_configuration as own_configuration
from tests.mcp.harness import call, connected, one_tool_server, session_with, turns
from tests.runtime.scripted import ScriptedOperator
from tests.runtime.session_harness import LiveSession, start_session
from tui_agent.config.sections import HookSettings
from tui_agent.core import events
from tui_agent.core.names import Approval
from tui_agent.runtime.operator import ApprovalReply, EscalationReply

RULES = {"allow": ["bash", "edit_file", "write_file"]}
SPELLINGS = (
    "touch new", "tee new < a.txt", "cp a.txt new", "mv a.txt new", "sed -i s/a/b/ a.txt", "echo x > new",
    "echo x >> a.txt", ": > new", "cat a.txt >| new", "dd if=a.txt of=new", "install a.txt new", "ln -s a.txt new",
    "ln a.txt new", "mkdir new", "rm a.txt", "truncate -s 0 a.txt", "chmod +x a.txt",
    "python3 -c \"open('new','w').write('x')\"", "perl -e 'open(F,\">new\");print F 1'",
    "awk 'BEGIN{print 1 > \"new\"}'", "bash -c 'touch new'", "env touch new",
    "find . -name a.txt -exec touch new ;", "echo new | xargs touch", "git init -q sub", "git checkout -q -b other",
    "(touch new)", "{ touch new; }", "f() { touch new; }; f", "for n in new; do touch $n; done", "x=touch; $x new",
    "eval touch new", "exec touch new", "touch new &", "$(echo touch) new", "cat <(touch new)", "printf x > new",
    "split -l 1 a.txt new", "sort -o new a.txt", "tar cf new a.txt", "gzip a.txt", "diff -u a.txt a.txt --output=new",
    "git -c core.fsmonitor='touch new; false' status", "command touch new", "timeout 5 touch new", "nice touch new",
    "sh -c 'sleep 0; touch new'", "python3 - <<'E'\nopen('new','w')\nE", "cat a.txt | tee new",
    "patch a.txt /dev/null -o new",
)  # fmt: skip


def picture(root: Path) -> dict[str, str]:
    """Every file of a folder with its content and mode."""
    return {
        str(path.relative_to(root)): f"{path.lstat().st_mode} "
        + (hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
        for path in sorted(root.rglob("*"))
    }


def agreeing() -> ScriptedOperator:
    """Says yes to every call, and to no plan."""
    return ScriptedOperator(
        approvals=deque([ApprovalReply("once")] * 200), answers=deque([EscalationReply("skip")] * 20)
    )


async def planned(folder: Path, *calls: dict[str, Any], **settings: Any) -> tuple[LiveSession, bool]:
    """A run in plan mode with these calls, and whether the workspace is as it was."""
    (folder / "workspace").mkdir()
    script = [*({"calls": [each]} for each in calls), "The plan: nothing yet."]
    chosen: dict[str, Any] = {"sandbox": "auto", "max_iterations": 200, "policy": "forge", **settings}
    live = await start_session(
        folder,
        script,
        operator=agreeing(),
        files={"a.txt": "a\n"},
        approve="plan",
        permissions=RULES,
        **chosen,
    )
    before = picture(folder / "workspace")
    await live.run("plan it")
    same = picture(folder / "workspace") == before
    await live.close()
    return live, same


@attack(
    "Fifty spellings of a change, all of them allowed by a rule and by the operator: programs, redirections, "
    "interpreters, functions, wrappers, git's settings",
    "Nothing of the workspace changes",
    fell="rules for `tee`, `cp`, `sed -i` and `touch` let them write",
    slow=True,
)
async def test_no_spelling_changes_anything(tmp_path: Path) -> None:
    live, same = await planned(tmp_path, *(call("bash", command=one) for one in SPELLINGS))
    assert len(live.of(events.IterationStarted)) > len(SPELLINGS) // 2
    assert same


@attack(
    "The same without a sandbox",
    "What is not known to read is refused",
    fell="rules for `tee`, `cp`, `sed -i` and `touch` let them write",
)
async def test_without_a_sandbox_what_may_change_is_refused(tmp_path: Path) -> None:
    live, same = await planned(
        tmp_path,
        *(call("bash", command=one) for one in SPELLINGS),
        call("bash", command="cat a.txt"),
        sandbox="off",
    )
    assert same
    assert [one.input["command"] for one in live.of(events.ToolStarted)] == ["cat a.txt"]


@attack("A command in the background", "It changes nothing either", slow=True)
async def test_a_background_command_changes_nothing(tmp_path: Path) -> None:
    writes = "python3 -c \"open('new','w')\"; sleep 0.2; python3 -c \"open('newer','w')\""
    _, same = await planned(
        tmp_path, call("bash", command=writes, background=True), call("bash_output", id="b1", wait=2)
    )
    assert same


@attack(
    "A sub-agent writes a file, by a tool and by a command, and ends with an answer",
    "It changes nothing, and its answer is no plan that somebody is asked to carry out",
    fell="its answer was shown as the plan, and a yes ended plan mode for the whole run",
    slow=True,
)
async def test_a_sub_agent_changes_nothing(tmp_path: Path) -> None:
    live, same = await planned(
        tmp_path,
        call("task", name="write", prompt="Write it."),
        call("write_file", path="new", content="x"),
        call("bash", command="python3 -c \"open('new','w')\""),
        call("finish", answer="It is written."),
    )
    assert same
    assert [one.lane for one in live.operator.raised] == [""]
    lane = [one.event for one in live.of(events.LaneEvent)]
    assert any(isinstance(one, events.ToolRefused) for one in lane)


@attack("Hooks of the configuration that write, around a call that reads", "They change nothing", slow=True)
async def test_hooks_change_nothing(tmp_path: Path) -> None:
    hook = [{"hooks": [{"type": "command", "command": "python3 -c \"open('new','w')\"; exit 0"}]}]
    hooks = HookSettings.model_validate({"PreToolUse": hook, "PostToolUse": hook})
    live, same = await planned(tmp_path, call("read_file", path="a.txt"), hooks=hooks)
    assert same
    assert len(live.of(events.HookReported)) >= 1


@attack(
    "A hook that forbids a call, in plan mode",
    "It forbids it from within the sandbox too",
    slow=True,
)
async def test_a_hook_still_forbids(tmp_path: Path) -> None:
    hook = [{"hooks": [{"type": "command", "command": "cat > /dev/null; echo not this one >&2; exit 2"}]}]
    hooks = HookSettings.model_validate({"PreToolUse": hook})
    live, _ = await planned(tmp_path, call("read_file", path="a.txt"), hooks=hooks)
    (refused,) = live.of(events.ToolRefused)
    assert "not this one" in refused.reason or "there is none here" in refused.reason


@attack(
    "A tool of a server that was allowed for good and does not say that it only reads",
    "It is refused",
    fell="a rule let it run",
)
async def test_a_servers_tool_changes_nothing(tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    new = tmp_path / "workspace" / "new"
    program.write_text(
        one_tool_server("store", f"def said():\n    open({str(new)!r}, 'w')\n    return 'stored'\n")
    )
    servers = {"s": {"command": sys.executable, "args": [str(program)]}}
    script = [*turns(call("s__store"))]
    rules = {"allow": ["s__*"]}
    async with session_with(tmp_path, servers, script, approve="plan", permissions=rules) as live:
        await connected(live, "s")
        await live.run()
        assert "in plan mode nothing is changed" in live.of(events.ToolRefused)[0].content
    assert not new.exists()


@attack(
    "A card stands for an edit; the operator goes over to plan mode, and a yes comes after that",
    "The edit is refused",
    fell="it was carried out",
)
async def test_a_yes_that_comes_late(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    operator = ScriptedOperator(answers=deque([EscalationReply("skip")]))
    script = [{"calls": [call("write_file", path="new", content="x")]}, "The plan."]
    live = await start_session(tmp_path, script, operator=operator, approve="ask")

    async def late(asked: events.ApprovalAsked) -> ApprovalReply:
        live.session.set_approve(Approval.PLAN)
        return ApprovalReply("once")

    operator.approve = late
    await live.run()
    await live.close()
    assert not (tmp_path / "workspace" / "new").exists()
    assert "in plan mode nothing is changed" in live.of(events.ToolRefused)[0].content


@attack(
    "`network = true` and a service on this machine: a command in plan mode asks it for something",
    "It does not reach it: what is elsewhere is not changed either",
    slow=True,
)
async def test_plan_mode_has_no_network(tmp_path: Path) -> None:
    reached: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append("yes")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    asks = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)"
    sandbox = {"mode": "auto", "network": True, "loopback": [port]}
    async with server:
        live, same = await planned(tmp_path, call("bash", command=f'python3 -c "{asks}"'), sandbox=sandbox)
    assert same
    assert not reached
    assert not live.of(events.ToolSucceeded)
