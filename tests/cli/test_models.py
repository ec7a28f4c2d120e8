"""`agent-tui models`: the list for people and for programs."""

from __future__ import annotations

import json

from tests.cli.conftest import CommandLine

CONFIG = """
[profiles.careful]
model = "anthropic/claude-sonnet-4-5"
[profiles.here]
model = "openai/qwen\\u001b[2J"
api_base = "http://127.0.0.1:9/v1"
[aliases]
fast = "openai/gpt-4o-mini"
"""


def test_the_list_names_what_can_be_used_with_window_and_price(cli: CommandLine) -> None:
    cli.config_file.parent.mkdir(parents=True, exist_ok=True)
    cli.config_file.write_text(CONFIG)
    ended = cli("models", OPENAI_API_KEY="sk-secret-0123456789")
    assert ended.code == 0
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert (
        "careful = anthropic/claude-sonnet-4-5 200k $3 in $0.3 cached $15 out ANTHROPIC_API_KEY is not set"
        in lines
    )
    assert any(line.startswith("fast = openai/gpt-4o-mini 128k") for line in lines)
    assert "openai (OPENAI_API_KEY is set; called with openai)" in lines
    assert any("more: agent-tui models openai" in line for line in lines)
    assert "\x1b" not in ended.out
    assert "sk-secret" not in ended.out
    only = cli("models", "gpt-4o-mini", OPENAI_API_KEY="sk-secret-0123456789").out
    assert "gpt-4o-mini" in only
    assert "claude" not in only


def test_programs_get_one_object(cli: CommandLine) -> None:
    ended = cli("models", "--json", ANTHROPIC_API_KEY="sk-secret-0123456789")
    found = json.loads(ended.out)
    assert found["chosen"] is None
    (provider,) = found["providers"]
    assert (provider["name"], provider["variable"]) == ("anthropic", "ANTHROPIC_API_KEY")
    assert {"name", "window", "input", "output", "cached"} == provider["models"][0].keys()
    assert "sk-secret" not in ended.out


def test_where_nothing_can_be_used_the_list_says_what_to_do(cli: CommandLine) -> None:
    ended = cli("models", "nothing-is-called-so")
    assert (ended.code, ended.err) == (0, "")
    assert "No model that can be used now has 'nothing-is-called-so' in its name" in ended.out
