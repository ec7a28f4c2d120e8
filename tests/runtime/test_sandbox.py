"""The sandbox through the loop: what is recorded, what the model reads, what a command is given, refusing to start."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.runtime.session_harness import start_session
from tui_agent.config.sections import EnvironmentSettings, SandboxSettings
from tui_agent.core import events
from tui_agent.sandbox import choose
from tui_agent.session.sandboxes import tried_out
from tui_agent.store.audit import effects_of, in_words
from tui_agent.store.errors import SessionError

DONE = {"text": "done"}


def bash(command: str) -> list[object]:
    return [{"calls": [{"tool": "bash", "args": {"command": command}}]}, DONE]


def needs_one(live_sandbox: str) -> None:
    if live_sandbox == "off":
        pytest.skip("no sandbox works here")


async def test_the_run_says_what_its_commands_run_in_and_a_wall_is_explained(tmp_path: Path) -> None:
    live = await start_session(tmp_path, bash("echo x > /usr/agent-tui-was-here"), sandbox="auto")
    await live.run()
    await live.close()
    (started,) = live.of(events.RunStarted)
    assert live.state.run.sandbox == started.sandbox
    needs_one(started.sandbox)
    assert started.sandbox.endswith("no network")
    (failed,) = live.of(events.ToolFailed)
    assert "ran in a sandbox" in failed.failure.message
    assert not Path("/usr/agent-tui-was-here").exists()
    # The temporary folder of the commands is gone with the session.
    assert not (live.session.folder / "tmp").exists()


async def test_other_conversations_are_not_readable(tmp_path: Path) -> None:
    live = await start_session(
        tmp_path, bash(f"cat {tmp_path}/state/sessions/*/events.jsonl"), sandbox="auto"
    )
    await live.run()
    await live.close()
    needs_one(live.state.run.sandbox)
    assert live.of(events.ToolSucceeded) == []


async def test_secrets_of_the_environment_reach_commands_and_hooks_only_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "SOME_TOKEN", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, f"value-of-{name.lower()}")
    live = await start_session(
        tmp_path,
        bash("env > env.txt"),
        environment=EnvironmentSettings(passed=("GITHUB_TOKEN",)),
        hooks={"PreToolUse": [{"matcher": "bash", "hooks": [{"command": "env > hook.txt"}]}]},
        sandbox="auto",
    )
    await live.run()
    await live.close()
    for file in ("env.txt", "hook.txt"):
        given = (tmp_path / "workspace" / file).read_text()
        assert "value-of-github_token" in given
        assert "value-of-openai_api_key" not in given
        assert "value-of-some_token" not in given


async def test_a_session_that_requires_a_sandbox_does_not_start_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose, "candidates", tuple)
    with pytest.raises(SessionError, match="sandbox is required") as refused:
        await start_session(tmp_path, bash("true"), sandbox=SandboxSettings(mode="require"))
    assert "bubblewrap" in refused.value.todo
    assert not (tmp_path / "state" / "sessions").exists()


async def test_a_workspace_that_holds_the_temporary_folder_has_a_sandbox_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "workspace"
    (workspace / "tmp").mkdir(parents=True)
    monkeypatch.setattr(choose, "_TRIALS", {})
    monkeypatch.setattr(tempfile, "tempdir", str(workspace / "tmp"))
    live = await start_session(tmp_path, bash("true"), sandbox="auto")
    await live.run()
    await live.close()
    needs_one(live.state.run.sandbox)
    choose._TRIALS.clear()
    assert (await tried_out(live.session.settings)).mechanism is not None


async def test_auto_goes_on_without_one_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "candidates", tuple)
    live = await start_session(tmp_path, bash("echo x > a.txt"), sandbox="auto")
    await live.run()
    await live.close()
    assert live.of(events.RunStarted)[0].sandbox == "off"
    assert (tmp_path / "workspace" / "a.txt").exists()


async def test_what_a_command_planted_is_taken_back_and_said_to_all(tmp_path: Path) -> None:
    live = await start_session(
        tmp_path, bash("git init -q; git config core.fsmonitor evil; echo x > .envrc"), sandbox="auto"
    )
    await live.run()
    needs_one(live.state.run.sandbox)
    workspace = tmp_path / "workspace"
    (workspace / ".nvim.lua").write_text("the operator's")
    await live.close()
    (result,) = live.of(events.ToolSucceeded)
    assert "The sandbox undid what a command wrote" in result.content
    said = " ".join(notice.text for notice in live.of(events.Notice) if notice.origin == "sandbox")
    assert ".envrc" in said
    assert ".git/config" in said
    assert not (workspace / ".envrc").exists()
    assert "evil" not in (workspace / ".git" / "config").read_text()
    assert (workspace / ".nvim.lua").read_text() == "the operator's"
    (effect, *_) = [one for one in effects_of(live.events) if one["kind"] == "taken back"]
    assert "undid" in in_words([effect])[-1]


async def test_what_a_command_in_the_background_plants_is_taken_back_while_it_runs(tmp_path: Path) -> None:
    call = {"tool": "bash", "args": {"command": "sleep 0.3; echo x > .envrc; sleep 600", "background": True}}
    live = await start_session(tmp_path, [{"calls": [call]}, DONE], sandbox="auto")
    await live.run()
    needs_one(live.state.run.sandbox)
    await live.until(lambda _: any(notice.origin == "sandbox" for notice in live.of(events.Notice)))
    assert live.state.background.running
    assert not (tmp_path / "workspace" / ".envrc").exists()
    await live.close()


async def test_what_the_file_tools_write_by_leave_of_the_operator_stays(tmp_path: Path) -> None:
    write = {"tool": "write_file", "args": {"path": ".vscode/tasks.json", "content": "{}\n"}}
    live = await start_session(
        tmp_path, [{"calls": [write]}, *bash("echo x > .vscode/tasks.json")], sandbox="auto"
    )
    await live.run()
    await live.close()
    needs_one(live.state.run.sandbox)
    assert (tmp_path / "workspace" / ".vscode" / "tasks.json").read_text() == "{}\n"
