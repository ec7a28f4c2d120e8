"""Where the sessions of more agents are looked for, and what stands there that is none."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.formats import more_agents
from tui_agent.watch import places

UUID = "a1b2c3d4-e5f6-4a7b-8c9d-0e1f2a3b4c5d"
VSCODE = ".config/Code/User/globalStorage"
TASK = "tasks/1/api_conversation_history.json"
WHERE = {
    "qwen-code": ".qwen/projects/-w/chats/1.jsonl",
    "kimi-code": ".kimi-code/sessions/wd/session_1/agents/main/wire.jsonl",
    "cursor": f".cursor/projects/w/agent-transcripts/{UUID}/{UUID}.jsonl",
    "cline": f"{VSCODE}/saoudrizwan.claude-dev/{TASK}",
    "roo-code": f"{VSCODE}/rooveterinaryinc.roo-cline/{TASK}",
    "kilo-code": f"{VSCODE}/kilocode.kilo-code/{TASK}",
    "pi": ".pi/agent/sessions/--w--/1.jsonl",
    "oh-my-pi": ".omp/agent/sessions/-w/1.jsonl",
    "openclaw": f".openclaw/agents/main/sessions/{UUID}.jsonl",
    "aider": "work/.aider.chat.history.md",
    "antigravity": ".gemini/antigravity/brain/1/.system_generated/logs/transcript.jsonl",
    "goose": ".local/share/goose/sessions/1.jsonl",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("XDG_DATA_HOME", "QWEN_HOME", "KIMI_CODE_HOME", "CURSOR_CONFIG_DIR", "CLINE_DIR"):
        monkeypatch.delenv(variable, raising=False)
    for variable in ("PI_CODING_AGENT_DIR", "OPENCLAW_STATE_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def _found(agent: str, home: Path) -> list[str]:
    return [one.path.relative_to(home).as_posix() for one in places.sessions_of(agent, home / "state")]


@pytest.mark.parametrize("agent", WHERE)
def test_a_session_is_found_and_a_pipe_in_its_place_is_none(agent: str, home: Path) -> None:
    path = home / WHERE[agent]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    session = path.parent if path.name == "api_conversation_history.json" else path
    assert _found(agent, home) == [session.relative_to(home).as_posix()]
    path.unlink()
    os.mkfifo(path)
    assert _found(agent, home) == []


def test_a_copy_that_openclaw_keeps_is_no_session(home: Path) -> None:
    sessions = home / ".openclaw" / "agents" / "main" / "sessions"
    sessions.mkdir(parents=True)
    for name in (f"{UUID}.checkpoint.{UUID}.jsonl", "sessions.json", f"{UUID}.jsonl.deleted"):
        (sessions / name).write_text("{}")
    assert _found("openclaw", home) == []


def test_sessions_in_databases_are_found_here_and_in_the_projects_that_crush_lists(home: Path) -> None:
    listed = home / ".local" / "share" / "crush" / "projects.json"
    listed.parent.mkdir(parents=True)
    goose = home / ".local" / "share" / "goose" / "sessions"
    for folder in (home / "work" / ".crush", home / "other" / ".crush", goose):
        folder.mkdir(parents=True)
    more_agents.make_crush(home / "work" / ".crush" / "crush.db")
    more_agents.make_crush(home / "other" / ".crush" / "crush.db")
    more_agents.make_goose(goose / "sessions.db")
    listed.write_text(
        json.dumps({"projects": [{"data_dir": str(home / "other" / ".crush")}, {"data_dir": 3}, 7]})
    )
    assert sorted(_found("crush", home)) == ["other/.crush/crush.db/s", "work/.crush/crush.db/s"]
    assert _found("goose", home) == [".local/share/goose/sessions/sessions.db/s"]
    (found,) = places.sessions_of("goose", home / "state")
    assert found.workspace == "/w"
    listed.unlink()
    os.mkfifo(listed)
    assert _found("crush", home) == ["work/.crush/crush.db/s"]
