"""Settings: the order of their sources, and what is said when one of them is wrong."""

from __future__ import annotations

import json
import os
from operator import attrgetter
from pathlib import Path
from typing import Any, get_args

import pytest

from docs.write_configuration import TARGET, page
from tui_agent.config.errors import ConfigError
from tui_agent.config.sections import RecoverySettings
from tui_agent.config.settings import (
    Settings,
    known_keys,
    load_settings,
    require_model,
    require_workspace,
)
from tui_agent.core.events import Approval
from tui_agent.core.recovery.policy import RecoveryPolicy, preset


@pytest.fixture(autouse=True)
def _no_user_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "tui_agent.config.settings.user_config_file", lambda: tmp_path / "user" / "config.toml"
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def user_file(place: Path, text: str) -> Path:
    file = place.parent / "user" / "config.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def project_file(place: Path, text: str) -> Path:
    file = place / ".agent-tui.toml"
    file.write_text(text)
    return file


def load(place: Path, overrides: dict[str, Any] | None = None, **environ: str) -> Settings:
    return load_settings(overrides, environ=environ, cwd=place)


def message_of(place: Path, overrides: dict[str, Any] | None = None, **environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(place, overrides, **environ)
    return caught.value.message


def test_each_source_wins_over_the_ones_beneath_it(place: Path) -> None:
    assert load(place).max_iterations == 50
    user = user_file(place, "max_iterations = 10")
    assert load(place).max_iterations == 10
    project = project_file(place, "max_iterations = 9")
    assert load(place).max_iterations == 9
    assert load(place, AGENT_TUI_MAX_ITERATIONS="30").max_iterations == 30
    settings = load(place, {"max_iterations": 40}, AGENT_TUI_MAX_ITERATIONS="30")
    assert settings.max_iterations == 40
    assert settings.sources["max_iterations"] == "--max-iterations"
    assert settings.asked_steps, "who names the steps at the start is not asked for more"
    assert not load(place, AGENT_TUI_MAX_ITERATIONS="30").asked_steps
    assert Settings(max_iterations=3).asked_steps
    assert not Settings().asked_steps
    assert load(place, AGENT_TUI_MAX_ITERATIONS="30").sources["max_iterations"] == "AGENT_TUI_MAX_ITERATIONS"
    assert load(place).sources["max_iterations"] == str(project)
    project.unlink()
    assert load(place).sources["max_iterations"] == str(user)


def test_an_option_that_is_not_given_overrides_nothing(place: Path) -> None:
    assert load(place, {"policy": None}, AGENT_TUI_POLICY="hpd").policy == "hpd"


SAMPLES: dict[str, tuple[str, str]] = {
    "model": ('"openai/x"', "openai/x"),
    "profile": ('"own"\n[profiles.own]\nmodel = "a/b"', "own"),
    "api_base": ('"http://127.0.0.1:1/v1"', "http://127.0.0.1:1/v1"),
    "policy": ('"forge"', "forge"),
    "workspace": ('"."', "."),
    "approve": ('"writes"', "writes"),
    "max_iterations": ("7", "7"),
    "context_tokens": ("9000", "9000"),
    "model_timeout": ("5.5", "5.5"),
    "max_cost": ("0.25", "0.25"),
    "max_session_cost": ("1.25", "1.25"),
    "max_run_tokens": ("90000", "90000"),
    "max_session_tokens": ("90000", "90000"),
    "max_run_time": ("600", "600"),
    "max_session_time": ("6000", "6000"),
    "sub_agents": ("2", "2"),
    "agent": ("'vibe-acp'", "vibe-acp"),
    "advise": ("'steer'", "steer"),
    "agents": ("{own = {command = 'own --acp', cwd = 'x'}}", '{"own": {"command": "own --acp", "cwd": "x"}}'),
    "budget_warning": ("0.5", "0.5"),
    "fallback_models": ('["a/b", "c/d"]', "a/b, c/d"),
    "compact_at": ("0.5", "0.5"),
    "tool_calls": ('"text"', "text"),
    "summary_model": ('"a/cheap"', "a/cheap"),
    "mcp": ("false", "false"),
    "theme": ('"paper"', "paper"),
    "step": ("true", "true"),
    "plain": ("true", "true"),
    "vim": ("true", "true"),
    "captions": ("false", "false"),
    "glyphs": ('"ascii"', "ascii"),
    "motion": ('"reduced"', "reduced"),
    "output": ('"jsonl"', "jsonl"),
    "on_escalation": ('"stop"', "stop"),
    "on_limit": ('"wait"', "wait"),
    "wait_at_most": ("90", "90"),
    "timeout": ("60", "60"),
    "command_timeout": ("30", "30"),
    "state_dir": ('"state"', "state"),
    "retention_days": ("30", "30"),
    "speed": ("2", "2"),
    "at": ("12", "12"),
    "run": ("2", "2"),
    "print": ("true", "true"),
    "parameters": ("{temperature = 0.2, seed = 4}", '{"temperature": 0.2, "seed": 4}'),
    "profiles": ("{own = {model = 'a/b', top_p = 0.5}}", '{"own": {"model": "a/b", "top_p": 0.5}}'),
    "aliases": ("{fast = 'a/b'}", '{"fast": "a/b"}'),
    "prices": ("{'a/b' = {prompt = 1, completion = 2}}", '{"a/b": {"prompt": 1, "completion": 2}}'),
    "keys": ('{diff = "f11"}', '{"diff": "F11"}'),
    "fallbacks": ("{quota = ['a/b', 'c/d']}", '{"quota": "a/b, c/d"}'),
    "sandbox": ('"off"', "off"),
    "environment": ('{pass = ["A_TOKEN"]}', '{"pass": ["A_TOKEN"]}'),
    "permissions": ('{deny = ["bash(rm -rf *)"]}', '{"deny": ["bash(rm -rf *)"]}'),
    "recovery": ("{stall_threshold = 4}", '{"stall_threshold": 4}'),
    "format": ('{"*.py" = ["ruff", "format", "{path}"]}', '{"*.py": ["ruff", "format", "{path}"]}'),
    "console": ('{panes = "wide"}', '{"panes": "wide"}'),
    "notify": ('{command = ["say"]}', '{"command": ["say"]}'),
    "telemetry": ("{content = true}", '{"content": true}'),
    "web": ('{private_hosts = ["localhost"]}', '{"private_hosts": ["localhost"]}'),
    "diagnostics": (
        '{"*.ts" = {shell = "tsc | head", timeout = 9}}',
        '{"*.ts": {"shell": "tsc | head", "timeout": 9}}',
    ),
    "hooks": (
        '{PreToolUse = [{matcher = "bash", hooks = [{command = "true"}]}]}',
        '{"PreToolUse": [{"matcher": "bash", "hooks": [{"command": "true"}]}]}',
    ),
}


def test_a_table_for_the_model_holds_its_name_and_what_happens_at_its_limit(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[model]\nname = "a/b"\non_limit = "wait"\nwait_at_most = 90\n')
    settings = load_settings(config=file, environ={}, cwd=tmp_path)
    assert (settings.model, settings.on_limit, settings.wait_at_most) == ("a/b", "wait", 90.0)
    environ = {"AGENT_TUI_MODEL__ON_LIMIT": "stop"}
    assert load_settings(config=file, environ=environ, cwd=tmp_path).on_limit == "stop"
    file.write_text('[model]\non_limits = "wait"\n')
    with pytest.raises(ConfigError, match="on_limit"):
        load_settings(config=file, environ={}, cwd=tmp_path)


@pytest.mark.parametrize("key", sorted(known_keys()))
def test_every_key_can_be_set_in_a_file_and_in_the_environment_alike(place: Path, key: str) -> None:
    in_file, in_environment = SAMPLES[key]
    name = "print_only" if key == "print" else key
    user = user_file(place, f"{key} = {in_file}")
    from_file = getattr(load(place), name)
    user.unlink()
    there = {"AGENT_TUI_PROFILES": '{"own": {"model": "a/b"}}'} if key == "profile" else {}
    from_environment = getattr(load(place, **there, **{f"AGENT_TUI_{key.upper()}": in_environment}), name)
    if key in {"workspace", "state_dir"}:
        assert from_file == (user.parent / in_environment).resolve()
        assert from_environment == (place / in_environment).resolve()
    else:
        assert from_file == from_environment != getattr(Settings(), name)


def test_a_section_is_merged_key_by_key_over_all_sources(place: Path) -> None:
    user_file(place, "[recovery]\nstall_threshold = 4\nattempts_limit = 6")
    project_file(place, "[recovery]\nstall_threshold = 5")
    settings = load(place, AGENT_TUI_RECOVERY__STREAK_LIMIT="9")
    assert settings.recovery.overrides() == {"stall_threshold": 5, "attempts_limit": 6, "streak_limit": 9}


def test_settings_made_directly_read_neither_files_nor_the_environment(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_TUI_POLICY", "hpd")
    user_file(place, 'policy = "forge"')
    assert Settings(workspace=place).policy == "combined"


def test_another_file_can_stand_in_for_the_users(place: Path) -> None:
    user_file(place, 'policy = "forge"')
    (place / "mine.toml").write_text('policy = "gigi"')
    assert load_settings({}, config="mine.toml", environ={}, cwd=place).policy == "gigi"
    assert load(place, AGENT_TUI_CONFIG="mine.toml").policy == "gigi"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("polcy = 'hpd'", ["polcy: there is no such key; the nearest is policy"]),
        ("max-iterations = 3", ["max-iterations: there is no such key; the nearest is max_iterations"]),
        (
            "zzzzzz = 1",
            ["zzzzzz: there is no such key; allowed are advise, agent, agents, aliases, api_base"],
        ),
        (
            "[recovery]\nstreak_limits = 3",
            ["recovery.streak_limits: there is no such key; the nearest is recovery.streak_limit"],
        ),
        ("[recovery]\nbackoff_cap = inf", ["recovery.backoff_cap: must be a finite number"]),
        ("[recovery]\nname = 'x'", ["recovery.name: there is no such key"]),
        ("max_tokens = 4096", ["max_tokens: there is no such key; the nearest is max_"]),
        ("[hooks]\nPreTool = []", ["hooks.PreTool", "the nearest is hooks.PreToolUse"]),
        (
            "policy = 'best'",
            ["policy: must be 'forge', 'gigi', 'funnelcanary', 'hpd' or 'combined'", "'best'"],
        ),
        ("policy = 'Forge'", ["it is 'Forge' (did you mean 'forge'?)"]),
        ("approve = 'al'", ["must be 'plan', 'ask', 'writes' or 'all'", "did you mean 'all'?"]),
        ("[recovery]\nattempts = 'blocked'", ["did you mean 'block'?"]),
        ("max_iterations = 'many'", ["max_iterations: must be a whole number;", "'many'"]),
        ("max_iterations = 0", ["max_iterations: must be greater than or equal to 1"]),
        ("max_cost = nan", ["max_cost: must be a finite number"]),
        ("step = 'perhaps'", ["step: must be true or false"]),
        ("recovery = 3", ["recovery: must be"]),
        (
            "[recovery]\ndegrade_threshold = 3",
            ["recovery.degrade_threshold: must be less than or equal to 1"],
        ),
        (
            "[recovery]\nstuck_repeats = 21",
            ["recovery.stuck_repeats: must be at most 20 (stuck_window)", "it is '21'"],
        ),
        (
            "[recovery]\nstuck_alternation = 8\nstuck_window = 7",
            ["recovery.stuck_alternation: must be at most 7"],
        ),
        ("api_base = 'localhost'", ["api_base: must be an address as http://"]),
        ("[[hooks.PreToolUse]]\nmatcher = '('", ["matcher", "must be a regular expression"]),
        ('[format]\n"*.py" = "ruff format"', ["format.*.py", "must be a list of arguments"]),
        ('[diagnostics]\n"*.py" = {timeout = 3}', ["diagnostics.*.py", "either a command"]),
        ("[[hooks.PreToolUse]]\nhooks = [{command = 3}]", ["hooks.PreToolUse.0.hooks.0.command"]),
        ("model = \nx = 1", ["it is not valid TOML", "line 1"]),
        ("model = 'a'\nmodel = 'b'", ["it is not valid TOML"]),
        ("model = " + "[" * 3000 + "]" * 3000, ["it is nested too deeply"]),
        ("max_iterations = " + "9" * 5000, ["it is not valid TOML", "5000 digits"]),
    ],
)
def test_a_wrong_file_is_named_with_key_and_what_is_allowed(
    place: Path, text: str, expected: list[str]
) -> None:
    file = user_file(place, text)
    said = message_of(place)
    assert str(file) in said
    for part in expected:
        assert part in said


def test_all_problems_of_all_sources_are_listed_at_once(place: Path) -> None:
    user_file(place, "polcy = 1\nmax_iterations = 'many'")
    project_file(place, "maxcost = 3")
    said = message_of(place, {"approve": "none"}, AGENT_TUI_STEP="perhaps")
    assert "wrong in 5 places" in said
    for part in ("polcy", "max_iterations", "maxcost", "--approve", "AGENT_TUI_STEP"):
        assert part in said


def test_files_that_are_no_configuration_are_said_to_be_none(place: Path) -> None:
    binary = place / "binary.toml"
    binary.write_bytes(b"model = '\xff\xfe'")
    for config, why in [("missing.toml", "no such file"), (".", "not a file"), ("binary.toml", "not UTF-8")]:
        with pytest.raises(ConfigError, match=why):
            load_settings({}, config=config, environ={}, cwd=place)


@pytest.mark.parametrize(
    "key", ["openai_api_key", "OPENAI_API_KEY", "api-key", "anthropic_auth_token", "password"]
)
def test_a_provider_key_in_a_file_is_refused_and_never_repeated(place: Path, key: str) -> None:
    file = project_file(place, f"{key} = 'sk-very-secret'")
    said = message_of(place)
    assert f"{file}: {key}" in said
    assert "the provider's own variable" in said
    assert "sk-very-secret" not in said


def test_a_provider_key_behind_our_prefix_is_refused_too(place: Path) -> None:
    said = message_of(place, AGENT_TUI_OPENAI_API_KEY="sk-very-secret")
    assert "AGENT_TUI_OPENAI_API_KEY" in said
    assert "sk-very-secret" not in said


def test_a_misspelt_variable_is_an_error_and_a_foreign_one_is_not(place: Path) -> None:
    assert "the nearest is AGENT_TUI_APPROVE" in message_of(place, AGENT_TUI_APROVE="all")
    assert "the nearest is AGENT_TUI_RECOVERY__STREAK_LIMIT" in message_of(
        place, AGENT_TUI_RECOVERY__STREAK_LIMITS="3"
    )
    assert "must be" in message_of(place, AGENT_TUI_HOOKS="[" * 3000)
    assert load(place, AGENT_TUI_QUUX_WIDGET="1") == load(place)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("approve = 'all'", "unasked"),
        ("approve = 'writes'", "unasked"),
        ("api_base = 'http://elsewhere.example/v1'", "where your provider key"),
        ("[[hooks.PreToolUse]]\nhooks = [{command = 'true'}]", "commands that run unasked"),
        ("[web]\nprivate_hosts = ['localhost']", "addresses of your network"),
        ("[format]\n'*.py' = ['true']", "formatters are commands that run unasked"),
        ("[diagnostics]\n'*.py' = ['true']", "checkers are commands that run unasked"),
        ("state_dir = '.'", "where your sessions are written"),
        ("retention_days = 1", "deleted"),
        ("workspace = '/'", "the workspace it would choose"),
        ("model = 'huggingface/https://elsewhere.example'", "where your key is sent"),
        ("fallback_models = ['huggingface/https://elsewhere.example']", "where your key is sent"),
        ("summary_model = 'huggingface/https://elsewhere.example'", "where your key is sent"),
        ("recovery.advisor = 'openai/their-own'", "reads what you work on"),
        ("model = 'scripted:./evil.toml'", "scripted"),
        ("aliases.x = 'scripted:./evil.toml'", "scripted"),
        ("fallbacks.auth = ['huggingface/https://elsewhere.example']", "where your key is sent"),
        ("profiles.x = {model = 'huggingface/https://elsewhere.example'}", "where your key is sent"),
        ("profiles.x = {model = 'a/b', api_base = 'http://elsewhere.example/v1'}", "where your key"),
        ("profiles.x = {model = 'a/b', extra_headers = {X-Forward = 'elsewhere'}}", "where your key"),
        ("profiles.x = {model = 'a/b', extra_body = {store = true}}", "where your key"),
        ("profiles.x = {model = 'a/b', api_key_variable = 'OTHER'}", "where your key"),
        ("profiles.x = {model = 'a/b', total_timeout = 9999}", "where your key"),
    ],
)
def test_a_checkout_cannot_decide_what_only_a_person_may(place: Path, text: str, reason: str) -> None:
    file = project_file(place, text)
    said = message_of(place)
    assert str(file) in said
    assert reason in said
    assert "config.toml" in said
    # The same words in the user's own file are the user's right.
    file.unlink()
    user_file(place, text)
    load(place)


MINE = "[profiles.mine]\nmodel = 'anthropic/a'\napi_key_variable = 'MINE'\nextra_headers = {X-Org = 'us'}\n"


def test_a_checkout_cannot_send_the_key_of_a_users_profile_to_another_provider(place: Path) -> None:
    user_file(place, f"profile = 'mine'\n{MINE}")
    file = project_file(place, "[profiles.mine]\nmodel = 'deepseek/b'")
    assert "your own file has this profile" in message_of(place)
    file.write_text("model = 'deepseek/b'")
    means = load(place).called(load(place).model)
    assert (means.model, means.profile) == ("deepseek/b", None)


def test_a_checkout_may_choose_a_profile_and_tune_its_own(place: Path) -> None:
    user_file(place, MINE)
    project_file(place, "profile = 'mine'\n[profiles.tuned]\nmodel = 'a/b'\ntemperature = 0.1")
    settings = load(place)
    assert settings.model == "mine"
    assert settings.called("mine").model == "anthropic/a"
    assert settings.called("tuned").parameters.temperature == 0.1


PROFILES = """
api_base = "http://127.0.0.1:1/v1"
[parameters]
temperature = 0.5
seed = 7
[profiles.fast]
model = "openai/small"
temperature = 0.0
[profiles.cloud]
model = "anthropic/large"
api_base = ""
[aliases]
quick = "fast"
q = "quick"
sonnet = "anthropic/sonnet"
"""


def test_a_name_is_a_profiles_an_alias_or_a_models_own(place: Path) -> None:
    user_file(place, PROFILES)
    settings = load(place, {"profile": "fast"})
    assert (settings.model, settings.sources["model"]) == ("fast", "--profile")
    for name in ("fast", "quick", "q"):
        means = settings.called(name)
        assert (means.model, means.api_base) == ("openai/small", "http://127.0.0.1:1/v1")
        assert means.parameters.given() == {"temperature": 0.0, "seed": 7}
    assert settings.called("cloud").api_base is None
    assert settings.called("sonnet").model == "anthropic/sonnet"
    assert settings.called("other/model")[:2] == ("other/model", "http://127.0.0.1:1/v1")
    assert settings.called("other/model").parameters.given() == {"temperature": 0.5, "seed": 7}


def test_a_value_that_somebody_chose_is_told_from_the_default(place: Path) -> None:
    assert not load(place, {}).says("model_timeout")
    assert load(place, {"model_timeout": 120.0}).says("model_timeout")
    user_file(place, "model_timeout = 120")
    assert load(place, {}).says("model_timeout")
    assert Settings(model_timeout=120.0).says("model_timeout")
    assert not Settings().says("model_timeout")


def test_options_beside_a_profile_outweigh_what_it_says(place: Path) -> None:
    user_file(place, f"model = 'not/this'\nmodel_timeout = 5\n{PROFILES}")
    options = {"model": "openai/x", "parameters.reasoning_effort": "high", "model_timeout": 9.0}
    means = load(place, {"profile": "fast", **options}).called("fast")
    assert means.model == "openai/x"
    assert means.parameters.given() == {"reasoning_effort": "high", "temperature": 0.0, "seed": 7}
    assert means.profile is not None
    assert means.profile.model_timeout == 9.0
    assert load(place, {"profile": "fast"}).called("fast").model == "openai/small"
    assert load(place, AGENT_TUI_PROFILE="cloud").model == "cloud"
    both = load(place, {"model": "openai/x"}, AGENT_TUI_PROFILE="fast")
    assert both.called(both.model).model == "openai/x"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("profile = 'fats'\n[profiles.fast]\nmodel = 'a/b'", ["profile", "did you mean 'fast'?"]),
        ("profile = 'x'", ["there is no profile 'x' (there is none)", "[profiles.NAME]"]),
        ("[profiles.p]\ntemperature = 1", ["profiles.p.model: ", "required"]),
        (
            "[profiles.p]\nmodel = 'a/b'\ntemprature = 1",
            ["profiles.p.temprature", "nearest is profiles.p.temperature"],
        ),
        (
            "[profiles.p]\nmodel = 'a/b'\ntemperature = 3",
            ["profiles.p.temperature", "less than or equal to 2"],
        ),
        (
            "[profiles.p]\nmodel = 'a/b'\napi_key = 'sk-secret'",
            ["profiles.p.api_key", "does not belong in a file"],
        ),
        (
            "[profiles.p]\nmodel = 'a/b'\nextra_headers = {Authorization = 'Bearer sk-secret'}",
            ["profiles.p.extra_headers", 'Authorization = "${MY_TOKEN}"'],
        ),
        ("[profiles.p]\nmodel = 'a/b'\nextra_headers = {\"a b\" = 'x'}", ["as HTTP allows them"]),
        ("[profiles.p]\nmodel = 'a/b'\nextra_body = {messages = []}", ["must not replace messages"]),
        ("[profiles.\"a/b\"]\nmodel = 'a/b'", ["profiles.a/b"]),
        ("[aliases]\na = 'b'\nb = 'a'", ["aliases: must not refer to themselves"]),
        ("[aliases]\np = 'a/b'\n[profiles.p]\nmodel = 'a/b'", ["aliases.p: there is a profile of this name"]),
        ("[parameters]\ntop_p = 0", ["parameters.top_p: must be greater than 0"]),
        ("[fallbacks]\nrate_limits = 'a/b'", ["fallbacks.rate_limits", "fallbacks.rate_limit"]),
    ],
)
def test_a_wrong_profile_is_named_with_what_is_allowed(place: Path, text: str, expected: list[str]) -> None:
    file = user_file(place, text)
    said = message_of(place)
    for words in (str(file), *expected):
        assert words in said
    assert "sk-secret" not in said


def test_a_checkout_may_ask_for_more_care(place: Path) -> None:
    user_file(place, "approve = 'all'")
    project_file(place, "approve = 'ask'")
    assert load(place).approve is Approval.ASK


@pytest.mark.parametrize(
    ("users", "projects", "allowed"),
    [
        ("max_cost = 2.0", "max_cost = 1.0", 1.0),
        ("max_cost = 2.0", "max_cost = 2", 2.0),
        ("max_cost = 2.0", "max_cost = 3.0", None),
        ("max_cost = 2.0", "max_cost = '999'", None),
        ("max_cost = '2'", "max_cost = ' 1e3 '", None),
        ("max_cost = 2.0", "max_cost = 1_000", None),
        ("max_cost = 0.5", "max_cost = true", None),
        ("max_cost = 2.0", "max_cost = [1]", None),
        ("max_cost = 2.0", f"max_cost = 1{'0' * 400}", None),
        ("", "max_cost = 3.0", 3.0),
        ("max_iterations = 10", "max_iterations = 11", None),
        ("max_iterations = 10", "max_iterations = '9'", 9),
        ("", "max_iterations = 51", None),
        ("timeout = 60", "timeout = 61", None),
        ("", "timeout = 61", 61.0),
        ("context_tokens = 8000", "context_tokens = 9000", None),
        ("", "recovery.model_tries = 6", None),
        ("", "recovery.model_tries = 2", 2),
        ("[recovery]\nbad_output_retries = 1", "recovery.bad_output_retries = '2'", None),
        ("[recovery]\nshrinks = 9", "recovery.shrinks = 8", 8),
    ],
)
def test_a_checkout_lowers_limits_and_never_raises_them(
    place: Path, users: str, projects: str, allowed: float | None
) -> None:
    user_file(place, users)
    project_file(place, projects)
    key = projects.partition(" ")[0]
    if allowed is None:
        said = message_of(place)
        assert f"{key}: a project's file may not set this" in said
        assert "more than" in said or "no number up to" in said
        assert (users and "user/config.toml)" in said) or "(the default)" in said
    else:
        assert attrgetter(key)(load(place)) == allowed


def test_no_model_is_said_with_those_that_the_present_keys_allow() -> None:
    with pytest.raises(ConfigError) as caught:
        require_model(Settings(), {"MISTRAL_API_KEY": "sk-very-secret"})
    assert "mistral/…" in caught.value.message
    assert "--model" in caught.value.message
    assert "sk-very-secret" not in caught.value.message
    with pytest.raises(ConfigError, match="no provider's key is set"):
        require_model(Settings(), {})
    assert require_model(Settings(model="openai/x"), {}) == "openai/x"


def test_a_workspace_that_cannot_serve_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        require_workspace(Settings(workspace=tmp_path / "missing"))
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ConfigError, match="is not a folder"):
        require_workspace(Settings(workspace=file))
    assert require_workspace(Settings(workspace=tmp_path)) == tmp_path
    monkeypatch.setattr("os.access", lambda _, mode: not mode & os.W_OK)
    assert require_workspace(Settings(workspace=tmp_path)) == tmp_path
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(ConfigError, match="cannot be read"):
        require_workspace(Settings(workspace=tmp_path))


def test_changed_copies_are_checked_and_keep_their_sources(place: Path) -> None:
    settings = load(place, {"policy": "hpd"}).replaced(model="scripted:first", print_only=True)
    assert (settings.model, settings.policy, settings.print_only) == ("scripted:first", "hpd", True)
    assert settings.sources["policy"] == "--policy"
    with pytest.raises(ValueError, match="policy"):
        settings.replaced(policy="best")


def test_the_document_of_all_keys_is_current() -> None:
    assert TARGET.read_text("utf-8") == page(), "run `python docs/write_configuration.py`"


def test_recovery_overrides_name_only_what_is_set() -> None:
    assert RecoverySettings().overrides() == {}
    assert RecoverySettings(streak_limit=4).overrides() == {"streak_limit": 4}


def test_every_parameter_of_the_policies_is_a_key_with_the_same_bounds(place: Path) -> None:
    for name, parameter in RecoveryPolicy.model_fields.items():
        if name == "name":
            continue
        user_file(place, f"[recovery]\n{name} = {json.dumps(parameter.default)}")
        assert load(place).recovery.overrides() == {name: parameter.default}, name
        user_file(place, f"[recovery]\n{name} = -1")
        assert f"recovery.{name}: must be" in message_of(place), name


SWITCHES = [
    name for name, field in RecoveryPolicy.model_fields.items() if "off" in get_args(field.annotation)
]


@pytest.mark.parametrize("name", [*SWITCHES, "stuck", "breaker"])
def test_every_detector_can_be_switched_off_and_left_as_the_policy_has_it(place: Path, name: str) -> None:
    off: object = "off" if name in SWITCHES else False
    user_file(place, f"[recovery]\n{name} = false")
    assert load(place).recovery.overrides() == {name: off}
    variable = f"AGENT_TUI_RECOVERY__{name.upper()}"
    assert getattr(preset("combined", **load(place).recovery.overrides()), name) == off
    again = load(place, **{variable: "true"}).recovery.overrides()
    assert preset("combined", **again) == preset("combined")
    assert load(place, **{variable: "False"}).recovery.overrides() == {name: off}


def test_a_switch_keeps_its_own_words(place: Path) -> None:
    user_file(place, "[recovery]\nattempts = 'advise'")
    assert load(place).recovery.overrides() == {"attempts": "advise"}
    user_file(place, "[recovery]\nattempts = 'maybe'")
    assert "recovery.attempts: must be 'off', 'advise' or 'block'" in message_of(place)
