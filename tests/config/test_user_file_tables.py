"""Tables of the user's file as they are edited: comments stay, the rest stays, and an error knows its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_agent.config.setting_rows import EXAMPLES
from tui_agent.config.settings import load_settings
from tui_agent.config.toml_lines import line_of
from tui_agent.config.user_file import TableError, UserFile

FILE = """\
# mine
max_iterations = 40  # enough

[profiles.a]  # first
model = "x"

[recovery]
ring = "stop"

[profiles.b]
model = "y" # why

[[hooks.PreToolUse]]
matcher = "bash"
hooks = [{ type = "command", command = "true" }]
"""


@pytest.fixture
def file(tmp_path: Path) -> UserFile:
    (tmp_path / "config.toml").write_text(FILE)
    return UserFile(tmp_path / "config.toml", {"model": "m", "workspace": tmp_path})


@pytest.mark.parametrize("key", EXAMPLES)
def test_each_example_can_be_kept_and_taken_out_again(key: str, tmp_path: Path) -> None:
    file = UserFile(tmp_path / "config.toml", {"model": "m", "workspace": tmp_path})
    settings = file.set_table(key, EXAMPLES[key])
    assert settings.origin(key) == str(file.path)
    assert file.table_text(key).strip() == EXAMPLES[key]
    assert file.set_table(key, "# nothing\n").origin(key) == "default"
    assert file.table_text(key) == ""


def test_a_table_in_two_places_is_one_text_and_the_rest_stays(file: UserFile) -> None:
    text = file.table_text("profiles")
    assert "# first" in text
    assert "# why" in text
    file.set_table("profiles", text.replace('"x"', '"z"'))
    assert file.read().profiles["a"].model == "z"
    written = file.path.read_text()
    assert written.startswith("# mine\nmax_iterations = 40  # enough\n")
    assert "# why" in written
    hint = '[[recovery.hints]]\npattern = "x"\nhint = "y"\n'
    file.set_table("recovery.hints", hint)
    assert file.table_text("recovery.hints") == hint
    assert file.read().recovery.ring == "stop"


@pytest.mark.parametrize(
    ("key", "text", "line", "says"),
    [
        ("aliases", 'a = "b"\n', 1, "Only aliases is written here"),
        ("recovery.hints", '[recovery]\nring = "off"\n', 2, "'ring' is none of it"),
        ("aliases", '[aliases]\na = "b"\na = "c"\n', 3, "no TOML"),
        ("aliases", '[aliases]\nb = "c"\na = "a"\n', 1, "refer to themselves"),
        ("hooks", '[[hooks.PreToolUse]]\nmatcher = "b"\n[[hooks.PreToolUse]]\nmatcher = "("\n', 4, "matcher"),
        ("format", '[format]\n"*.py" = "black"\n', 2, "must be a list of arguments"),
        ("profiles", '[profiles.a]\nmodel = "x"\napi_key = "sk-123"\n', 3, "api_key"),
    ],
)
def test_what_is_wrong_is_named_with_its_line_and_nothing_is_written(
    file: UserFile, key: str, text: str, line: int, says: str
) -> None:
    with pytest.raises(TableError, match=says) as refused:
        file.set_table(key, text)
    assert refused.value.line == line
    assert file.path.read_text() == FILE


def test_a_checkout_still_may_not_say_what_only_a_person_may(file: UserFile, tmp_path: Path) -> None:
    (tmp_path / ".agent-tui.toml").write_text('[aliases]\nfast = "m"\n')
    file.set_table("hooks", "")
    assert load_settings({"model": "m", "workspace": tmp_path}, file.path).hooks.pre_tool_use == ()
    assert (tmp_path / ".agent-tui.toml").read_text() == '[aliases]\nfast = "m"\n'


def test_the_line_of_a_key_is_found_in_lists_and_quotes() -> None:
    text = (
        '[[hooks.P]]\nm = 1\n[[hooks.P]]\n[[hooks.P.hooks]]\n[[hooks.P.hooks]]\nt = 2\n["a b".c]\nd.e = 1\n'
    )
    places = ("hooks.P.0.m", "hooks.P.1.hooks.1.t", "hooks.P.1.hooks.0.t", "a b.c.d.e", "a b.c.x", "nothing")
    assert [line_of(text, key) for key in places] == [2, 6, 4, 8, 7, 0]
