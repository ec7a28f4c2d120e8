"""The sandbox through the loop: what is recorded, what the model reads, what a command is given, refusing to start."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.session_harness import start_session
from tui_agent.config.sections import EnvironmentSettings, SandboxSettings
from tui_agent.core import events
from tui_agent.sandbox import choose
from tui_agent.store.errors import SessionError

DONE = {"text": "done"}


def bash(command: str) -> list[object]:
    return [{"calls": [{"tool": "bash", "args": {"command": command}}]}, DONE]


def needs_one(live_sandbox: str) -> None:
    if live_sandbox == "off":
        pytest.skip("no sandbox works here")


async def test_the_run_says_what_its_commands_run_in_and_a_wall_is_explained(tmp_path: Path) -> None:
    live = await start_session(tmp_path, bash("echo x > /usr/agent-tui-was-here"))
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
    live = await start_session(tmp_path, bash(f"cat {tmp_path}/state/sessions/*/events.jsonl"))
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
    assert not (tmp_path / "state").exists()


async def test_auto_goes_on_without_one_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "candidates", tuple)
    live = await start_session(tmp_path, bash("echo x > a.txt"))
    await live.run()
    await live.close()
    assert live.of(events.RunStarted)[0].sandbox == "off"
    assert (tmp_path / "workspace" / "a.txt").exists()
