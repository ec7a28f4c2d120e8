"""Agents by name: the operator's own, the well-known ones, and commands; none of a checkout."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tui_agent.acp_client.entries import agent_entry, known_agents
from tui_agent.acp_client.hooked import RUN_HOOKS
from tui_agent.acp_client.session import session_agent
from tui_agent.agents.dialects import DIALECTS
from tui_agent.cli.agents import print_agents
from tui_agent.config.errors import ConfigError
from tui_agent.config.settings import load_settings
from tui_agent.core import events
from tui_agent.core.state import SessionFacts
from tui_agent.store.errors import SessionError

OWN = """
[agents.mine]
command = "my-agent --acp"
env = {A = "1"}
cwd = "sub"
login = "key"

[agents.gemini]
command = ["/opt/gemini", "--acp"]
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "config.toml"
    file.write_text(OWN)
    return file


@pytest.mark.parametrize(
    ("wanted", "name", "argv"),
    [
        ("mine", "mine", ("my-agent", "--acp")),
        ("gemini", "gemini", ("/opt/gemini", "--acp")),
        ("opencode", "opencode", ("opencode", "acp")),
        ("npx -y some-agent", "npx", ("npx", "-y", "some-agent")),
        ("./bin/agent", "agent", ("./bin/agent",)),
    ],
)
def test_a_name_is_the_operators_own_or_well_known_and_anything_longer_is_a_command(
    config: Path, wanted: str, name: str, argv: tuple[str, ...]
) -> None:
    entry = agent_entry(load_settings({}, config), wanted)
    assert (entry.name, entry.argv) == (name, argv)


def test_an_entry_has_its_variables_its_folder_and_its_way_of_logging_in(
    config: Path, tmp_path: Path
) -> None:
    entry = agent_entry(load_settings({}, config), "mine")
    assert (entry.env, entry.folder(tmp_path), entry.login) == ({"A": "1"}, tmp_path / "sub", "key")


@pytest.mark.parametrize(
    ("wanted", "said"), [("opncode", "Did you mean opencode?"), ("x 'y", "no command line")]
)
def test_a_name_that_is_none_is_told_with_the_nearest(config: Path, wanted: str, said: str) -> None:
    with pytest.raises(ConfigError, match="agent") as raised:
        agent_entry(load_settings({}, config), wanted)
    assert said in raised.value.message


@pytest.mark.parametrize("line", ['agent = "opencode"', '[agents.mine]\ncommand = "evil"'])
def test_a_checkout_names_no_agent(tmp_path: Path, line: str) -> None:
    (tmp_path / ".agent-tui.toml").write_text(f"{line}\n")
    with pytest.raises(ConfigError, match="agent"):
        load_settings({"workspace": tmp_path}, cwd=tmp_path)


def test_the_list_says_what_is_there_and_how_the_others_are_got(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/qwen" if name == "qwen" else None)
    settings = load_settings({}, config)
    assert print_agents(settings) == 0
    lines = capsys.readouterr().out.splitlines()
    said = {line.split()[0]: line for line in lines if line}
    assert said["mine"].endswith("my-agent --acp (yours)")
    assert said["qwen"].endswith("qwen --acp (installed)")
    assert "(get it: npm install -g opencode-ai)" in said["opencode"]
    assert known_agents(settings).source in lines[-2]


def test_agents_in_whose_sessions_hooks_run_are_known_and_their_hooks_judge_answers() -> None:
    programs = {entry.argv[0] for entry in known_agents(load_settings({})).entries}
    assert programs > RUN_HOOKS.keys()
    for name in RUN_HOOKS.values():
        assert DIALECTS[name].answers.note
        assert DIALECTS[name].answers.go_on


def test_a_saved_session_starts_no_command_of_its_own(config: Path) -> None:
    settings = load_settings({}, config)
    opened = events.AgentOpened(agent="npx", session="theirs")
    with pytest.raises(SessionError, match="not taken from a saved session"):
        session_agent(settings, SessionFacts(agent=opened))
    assert (
        session_agent(settings, SessionFacts(agent=events.AgentOpened(agent="mine", session="s"))) is not None
    )
    assert session_agent(settings, SessionFacts()) is None
