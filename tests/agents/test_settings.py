"""Hooks in an agent's settings: what is not ours stays as it was, byte by byte."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.agents.dialect import TomlRegistry
from tui_agent.agents.dialects import DIALECTS
from tui_agent.agents.json_text import JsonTextError, add, remove
from tui_agent.cli import main
from tui_agent.sandbox.obeyed import TABLE

ROOT = Path(__file__).resolve().parents[2]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
KEYS = ("hooks", "Stop")


@given(
    st.dictionaries(st.text(max_size=6).filter(lambda key: key != "hooks"), VALUES, max_size=4),
    st.sampled_from([None, 2, "\t"]),
)
def test_what_was_added_is_there_and_goes_again(
    settings: dict[str, object], indent: int | str | None
) -> None:
    text = json.dumps(settings, indent=indent)
    added = add(add(text, KEYS, {"ours": 1}), ("hooks", "Start"), {"ours": 2})
    assert json.loads(added) == {**settings, "hooks": {"Stop": [{"ours": 1}], "Start": [{"ours": 2}]}}
    for key in ("Stop", "Start"):
        added = remove(added, ("hooks", key), lambda item: '"ours"' in item)
    assert json.loads(added) == settings


WRITTEN = """{
    // by hand
    "model": "opus", /* the large one */
    "hooks": {
        "Stop": [{"hooks": [{"command": "say done"}]},],
    },
}
"""


def test_comments_trailing_commas_and_others_hooks_stay() -> None:
    added = add(WRITTEN, KEYS, {"ours": 1})
    assert added.count("say done") == added.count("// by hand") == added.count('"ours"') == 1
    assert remove(added, KEYS, lambda item: "ours" in item) == WRITTEN.replace("]}]},]", "]}]},]")


@pytest.mark.parametrize(
    "text", ['{"a" 1}', '{"hooks": []}', '{"hooks": {"Stop": {}}}', "[1]", "{", '{"a": 1} {}', "[" * 5000]
)
def test_what_cannot_be_changed_is_said(text: str) -> None:
    with pytest.raises(JsonTextError):
        add(text, KEYS, {})


TOML = '# mine\n[[hooks]]\nname = "other"\ntype = "post_tool"\ncommand = "say done"\n\n[extra]\nkey = 1\n'


@pytest.mark.parametrize("text", ["", TOML, TOML.rstrip()])
def test_tables_of_ours_are_added_at_the_end_and_go_again(text: str) -> None:
    registry = TomlRegistry()
    added = registry.add(registry.add(text, ["pre_tool"], "ours 1"), ["post_tool"], 'ours "2"')
    hooks = tomllib.loads(added)["hooks"]
    assert [(hook["type"], hook["command"]) for hook in hooks[-2:]] == [
        ("pre_tool", "ours 1"),
        ("post_tool", 'ours "2"'),
    ]
    gone = registry.remove(added, ("pre_tool", "post_tool"), "ours")
    assert gone.rstrip() == text.rstrip()


def test_a_list_of_hooks_in_another_form_is_left_as_it_is() -> None:
    registry = TomlRegistry(event="event", named=False)
    assert tomllib.loads(registry.add("", ["Stop"], "ours"))["hooks"] == [
        {"event": "Stop", "command": "ours", "timeout": 10}
    ]
    with pytest.raises(ValueError, match="hooks"):
        registry.add("hooks = [{event = 'Stop', command = 'theirs'}]\n", ["Stop"], "ours")


def test_no_hooks_are_put_where_an_agent_reads_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hooks", "install", "kimi-code", "--project", "--yes"]) == 2
    assert "reads no hooks from a workspace" in capsys.readouterr().err


def test_installing_twice_and_taking_out_gives_the_file_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def hooks(*arguments: str) -> tuple[int, str]:
        code = main(["hooks", *arguments])
        return code, capsys.readouterr().out

    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("AGENT_TUI_STATE_DIR", str(tmp_path / "state"))
    file = tmp_path / "claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(WRITTEN)
    assert hooks("install", "claude-code")[0] == 2  # nobody can be asked
    assert file.read_text() == WRITTEN
    assert "+" in hooks("install", "claude-code", "--yes")[1]
    once = file.read_text()
    assert "nothing to do" in hooks("install", "claude-code", "--yes")[1]
    assert str(file) in hooks("status")[1]
    hooks("install", "claude-code", "--yes", "--advise", "note")
    assert file.read_text() == once.replace(" refuse 2>", " note 2>")
    hooks("uninstall", "claude-code", "--yes")
    assert file.read_text() == WRITTEN
    hooks("install", "claude-code", "--yes")
    file.write_text(file.read_text().replace("opus", "haiku"))
    hooks("uninstall", "claude-code", "--yes")
    assert file.read_text() == WRITTEN.replace("opus", "haiku")


def test_a_form_that_has_a_version_names_it_once() -> None:
    registry = DIALECTS["cursor"].settings.registry
    written = registry.add("", ["stop"], "ours")
    assert json.loads(written) == {"version": 1, "hooks": {"stop": [{"command": "ours", "timeout": 10}]}}
    theirs = '{"version": 1, "hooks": {"stop": [{"command": "say done"}]}}'
    assert registry.remove(registry.add(theirs, ["stop"], "ours"), ["stop"], "ours") == theirs


@pytest.mark.parametrize(
    ("agent", "scope"), [(name, f"--{scope}") for name, one in DIALECTS.items() for scope in one.scopes]
)
def test_any_agent_is_given_our_command_and_left_without_a_trace(
    agent: str,
    scope: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = DIALECTS[agent].settings
    for variable in (settings.home_variable, "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable or "NONE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AGENT_TUI_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    file = (
        tmp_path / settings.home / settings.file if scope == "--user" else Path(settings.project).absolute()
    )
    assert main(["hooks", "install", agent, scope, "--yes", "--advise", "note"]) == 0
    assert f"{agent} note" in file.read_text()
    main(["hooks", "status", agent])
    assert f"installed   {file}" in capsys.readouterr().out
    main(["hooks", "uninstall", agent, scope, "--yes"])
    assert not file.exists()


@pytest.mark.parametrize("name", DIALECTS)
def test_an_agent_s_settings_are_kept_from_commands_and_its_page_has_a_row(name: str) -> None:
    dialect = DIALECTS[name]
    folder = Path(dialect.settings.project or dialect.settings.home).parts[0]
    assert folder in {obeyed.name for obeyed in TABLE}, f"{folder} is missing in sandbox/obeyed.py"
    assert f"\n| {dialect.title} |" in (ROOT / "docs" / "AGENTS.md").read_text("utf-8")
