"""`agent-tui doctor`: findings and what to do about them, sources of settings, and no key anywhere."""

from __future__ import annotations

import itertools
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import CommandLine
from tui_agent import doctor
from tui_agent.config.settings import Settings
from tui_agent.models import kept_habits
from tui_agent.models.kept_habits import KeptServer
from tui_agent.sandbox import choose


def report_of(cli: CommandLine, *options: str, code: int, **environ: str) -> dict[str, Any]:
    ended = cli("doctor", "--json", *options, **environ)
    assert ended.code == code, ended
    report = json.loads(ended.out)
    assert isinstance(report, dict)
    assert report["healthy"] is (code == 0)
    return report


def check_of(report: dict[str, Any], name: str) -> dict[str, str]:
    (check,) = [check for check in report["checks"] if check["name"] == name]
    assert isinstance(check, dict)
    return check


def test_a_machine_without_a_key_is_healthy_and_shown_what_it_lacks(cli: CommandLine) -> None:
    report = report_of(cli, code=0)
    assert check_of(report, "model")["status"] == "advice"
    assert "--model" in check_of(report, "model")["todo"]
    assert check_of(report, "keys")["status"] == "advice"
    assert str(cli.config_file) in check_of(report, "configuration")["says"]


def test_every_finding_that_is_not_fine_says_what_to_do(cli: CommandLine) -> None:
    ended = cli("doctor", "--model", "openai/m", "--workspace", "missing")
    assert ended.code == 1
    assert "2 to put right" in ended.out
    lines = ended.out.splitlines()
    for line, after in itertools.pairwise(lines):
        if line.startswith("✗"):
            assert "→" in after


def test_keys_are_named_and_never_shown(cli: CommandLine) -> None:
    key = "sk-secret-0123456789"
    address = "http://user:hunter2@127.0.0.1:9/v1?token=hunter3"
    ended = cli("doctor", "--json", "--model", "openai/m", "--api-base", address, OPENAI_API_KEY=key)
    assert "OPENAI_API_KEY" in ended.out
    for secret in (key, "hunter2", "hunter3"):
        assert secret not in ended.out + ended.err


def test_a_model_whose_key_is_missing_is_put_right_first(cli: CommandLine) -> None:
    report = report_of(cli, "--model", "anthropic/x", code=1)
    assert check_of(report, "keys")["todo"] == "export ANTHROPIC_API_KEY=…"
    report_of(cli, "--model", "anthropic/x", code=0, ANTHROPIC_API_KEY="sk-x")


def test_a_server_is_reached_for_and_reported_when_nothing_listens(cli: CommandLine) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        down = check_of(report_of(cli, "--api-base", address, code=1), "server")
        assert address in down["says"]
        server.listen()
        up = check_of(report_of(cli, "--api-base", address, code=0), "server")
        assert "accepts connections" in up["says"]


def test_settings_are_shown_with_the_place_they_come_from(cli: CommandLine) -> None:
    cli.config_file.parent.mkdir(parents=True)
    cli.config_file.write_text("max_iterations = 9\n[recovery]\nstreak_limit = 4\n")
    settings = report_of(cli, "--policy", "hpd", code=0, AGENT_TUI_THEME="paper")["settings"]
    assert settings["max_iterations"] == {"value": "9", "source": str(cli.config_file)}
    assert settings["recovery"]["value"] == '{"streak_limit": 4}'
    assert settings["policy"] == {"value": "hpd", "source": "--policy"}
    assert settings["theme"] == {"value": "paper", "source": "AGENT_TUI_THEME"}
    assert settings["model_timeout"]["source"] == "default"
    shown = cli("doctor").out
    assert "max_iterations = 9" in shown
    assert "model_timeout" not in shown


def test_a_wrong_configuration_is_a_finding_and_not_the_end(cli: CommandLine) -> None:
    cli.config_file.parent.mkdir(parents=True)
    cli.config_file.write_text("polcy = 1")
    report = report_of(cli, code=1)
    assert "polcy" in check_of(report, "configuration")["says"]
    assert check_of(report, "git")


@pytest.mark.parametrize("version", sorted(doctor.COMPROMISED_LITELLM))
def test_a_compromised_litellm_is_put_right_first(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _: version)
    check = doctor.check_litellm()
    assert check.status == "broken"
    assert "change every key" in check.todo


def test_a_state_folder_that_others_can_read_is_pointed_out(cli: CommandLine) -> None:
    cli.state.mkdir(parents=True)
    cli.state.chmod(0o755)
    found = check_of(report_of(cli, code=0), "sessions")
    assert (found["status"], found["todo"]) == ("advice", f"chmod 700 {cli.state}")


def test_sessions_and_the_disk_they_use_are_counted(cli: CommandLine) -> None:
    cli("run", "x", "--model", cli.scenario('[[turns]]\ntext = "Done."\n'))
    assert "1 session" in check_of(report_of(cli, code=0), "sessions")["says"]


def test_a_program_that_does_not_run_is_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "rg"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "exit code 3" in doctor.check_program("rg").says
    assert doctor.check_program("git").says == "not found"


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="Linux has a sandbox for some machines alone"
)
def test_a_machine_that_no_sandbox_is_made_for_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose, "kept_in", lambda: False)
    check = doctor.check_sandbox(Settings(workspace=tmp_path))
    assert f"none for linux on {os.uname().machine}" in check.says
    assert "riscv64" in check.says
    assert not check.todo


def test_what_was_learnt_of_servers_is_shown_and_can_be_forgotten(cli: CommandLine, tmp_path: Path) -> None:
    today = kept_habits.today()
    for server in ("127.0.0.1:8080", "gate/api"):
        values = {"after_tool": "result", "turns": "alternate"}
        kept_habits.keep(tmp_path, KeptServer(server, "openai/m", today, values))
    state = ("--state-dir", str(tmp_path))
    first = report_of(cli, *state, code=0)["servers"][0]
    assert (first["server"], first["model"], first["learnt"]) == (
        "127.0.0.1:8080",
        "openai/m",
        today.isoformat(),
    )
    shown = cli("doctor", *state).out
    assert f"127.0.0.1:8080, openai/m (learnt on {today.isoformat()})" in shown
    assert "takes no message of the user after a tool's result" in shown

    forgotten = cli("doctor", *state, "--forget-habits", "http://127.0.0.1:8080/v1")
    assert (forgotten.code, forgotten.out) == (
        0,
        f"Forgotten: 127.0.0.1:8080, openai/m (learnt on {today.isoformat()})\n",
    )
    assert "there is gate/api" in cli("doctor", *state, "--forget-habits", "elsewhere").out
    assert "Forgotten: gate/api" in cli("doctor", *state, "--forget-habits").out
    assert "Nothing was learnt yet." in cli("doctor", *state, "--forget-habits").out


def test_a_damaged_file_of_what_was_learnt_is_pointed_out(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / kept_habits.FILE).write_text("{")
    (tmp_path).chmod(0o700)
    report = report_of(cli, "--state-dir", str(tmp_path), code=0)
    assert "is damaged" in check_of(report, "habits")["says"]
