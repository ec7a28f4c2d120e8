"""Attacks by what stands in the place of another agent's settings and of its program, when hooks are put in, taken out
or looked at.
"""

from __future__ import annotations

import os
import signal
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.adversarial.attack import Attack, attack, attacks
from tests.adversarial.ending import ends_here
from tui_agent.cli import hooks
from tui_agent.disk import replace_whole

if TYPE_CHECKING:
    from tests.cli.conftest import CommandLine, Ended

SETTINGS = '{\n  "model": "opus"\n}\n'
NEVER_CAME = "it waited for good"


def run(cli: CommandLine, verb: str, *options: str, agent: str = "claude-code") -> Ended:
    more = () if verb == "status" else ("--yes",)
    return ends_here(lambda: cli("hooks", verb, agent, *options, *more))


@pytest.fixture
def settings(cli: CommandLine) -> Path:
    """Claude Code's settings at home."""
    path = cli.home / ".claude" / "settings.json"
    path.parent.mkdir(parents=True)
    cli.environment["CLAUDE_CONFIG_DIR"] = ""
    return path


@attacks(
    *(
        Attack(
            f"settings_{name}",
            what,
            "Our hooks are in, and taken out leave it as it was: byte by byte, a link as a link",
            fell,
            value=(name, text),
        )
        for name, what, text, fell in (
            (
                "that_are_a_link",
                "A settings file that is a link into a folder of dotfiles",
                SETTINGS.encode(),
                "the link was replaced by a file",
            ),
            ("in_a_linked_folder", "A folder of settings that is a link", SETTINGS.encode(), ""),
            (
                "that_are_a_dangling_link",
                "A link to a file that is not there yet",
                None,
                "the link was replaced by a file",
            ),
            (
                "with_line_ends_of_windows",
                "Line ends of Windows",
                SETTINGS.replace("\n", "\r\n").encode(),
                "they came back as those of Unix",
            ),
            ("with_a_mark", "A byte order mark", b"\xef\xbb\xbf" + SETTINGS.encode(), "it was refused"),
            ("that_are_empty", "A file that is there and empty", b"", "it was deleted"),
            ("that_are_space", "A file of nothing but space", b" \n\n", ""),
            ("that_are_read_only", "A file that nobody may write", SETTINGS.encode(), ""),
            ("without_a_last_line_end", "No line end at the end", SETTINGS.rstrip().encode(), ""),
        )
    )
)
def test_settings_come_back(row: Attack, cli: CommandLine, settings: Path) -> None:
    name, before = row.value
    real = settings
    if name.endswith("link"):
        real = cli.home / "dotfiles" / "claude.json"
        real.parent.mkdir()
        settings.symlink_to("../dotfiles/claude.json")
    elif name.endswith("folder"):
        (cli.home / "dotfiles").mkdir()
        settings.parent.rmdir()
        settings.parent.symlink_to("dotfiles")
    if before is not None:
        real.write_bytes(before)
        real.chmod(0o444 if name.endswith("only") else 0o640)
        mode = stat.S_IMODE(real.stat().st_mode)
    assert run(cli, "install").code == 0
    assert b"agents/door.py" in real.read_bytes()
    if name.endswith("windows"):
        assert real.read_bytes().count(b"\n") == real.read_bytes().count(b"\r\n")
    assert str(settings) in run(cli, "status").out
    assert run(cli, "uninstall").code == 0
    assert settings.is_symlink() == name.endswith("link")
    if before is None:
        assert not real.exists()
    else:
        assert (real.read_bytes(), stat.S_IMODE(real.stat().st_mode)) == (before, mode)


@attacks(
    *(
        Attack(
            f"settings_are_{name}",
            f"{what} in the place of the settings",
            "Each verb says what is there, and ends; nothing is written",
            fell,
            value=name,
        )
        for name, what, fell in (
            ("a_pipe", "A named pipe", NEVER_CAME),
            ("a_device", "A link to /dev/zero", "it was read until memory ended"),
            ("sparse", "A file of 10 GB", "it was read until memory ended"),
            ("a_folder", "A folder", ""),
            ("no_text", "Bytes that are no text", ""),
        )
    )
)
def test_what_settings_may_be(row: Attack, cli: CommandLine, settings: Path) -> None:
    match row.value:
        case "a_pipe":
            os.mkfifo(settings)
        case "a_device":
            settings.symlink_to("/dev/zero")
        case "sparse":
            with settings.open("wb") as file:
                file.truncate(10 << 30)
        case "a_folder":
            settings.mkdir()
        case _:
            settings.write_bytes(b"\xff\xfe\x00")
    before = settings.lstat()
    shown = run(cli, "status")
    assert (shown.code, "cannot be read" in shown.out) == (0, True)
    for verb in ("install", "uninstall"):
        ended = run(cli, verb)
        assert (ended.code, "cannot be changed" in ended.err) == (2, True)
    assert settings.lstat() == before


@attacks(
    *(
        Attack(
            f"project_{name}",
            what,
            "It is refused: `--project` writes in the project alone, and nothing outside is changed or made",
            fell,
            value=name,
        )
        for name, what, fell in (
            (
                "folder_is_a_link",
                "A checkout whose `.claude` is a link to a folder outside",
                "it was written there",
            ),
            (
                "file_is_a_link",
                "A checkout whose settings are a link to the user's own",
                "the link was replaced by a file",
            ),
            (
                "file_is_a_dangling_link",
                "A checkout whose settings are a link to a file that is not there",
                "the link was replaced by a file",
            ),
            (
                "folder_is_swapped",
                "A folder that becomes a link between the look and the write",
                "it was written there",
            ),
        )
    )
)
def test_projects_that_lead_out(row: Attack, cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = cli.home / "outside"
    outside.mkdir()
    own = outside / "settings.local.json"
    folder = cli.workspace / ".claude"
    match row.value:
        case "folder_is_a_link":
            own.write_text(SETTINGS)
            folder.symlink_to(outside)
        case "file_is_a_link":
            own.write_text(SETTINGS)
            folder.mkdir()
            (folder / "settings.local.json").symlink_to(own)
        case "file_is_a_dangling_link":
            folder.mkdir()
            (folder / "settings.local.json").symlink_to(own)
        case _:
            folder.mkdir()
            real = hooks.carry_out

            def swapped(*given: object, **more: object) -> None:
                folder.rmdir()
                folder.symlink_to(outside)
                real(*given, **more)

            monkeypatch.setattr(hooks, "carry_out", swapped)
    before = own.read_text() if own.exists() else None
    ended = run(cli, "install", "--project")
    assert (ended.code, "cannot be changed" in ended.err) == (2, True)
    assert (own.read_text() if own.exists() else None) == before
    assert sorted(outside.iterdir()) == ([own] if before else [])


PROOF = "ran"


def program(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@attacks(
    *(
        Attack(
            f"program_{name}",
            what,
            "`hooks status` names it and does not run it",
            fell,
            value=name,
        )
        for name, what, fell in (
            (
                "of_the_checkout",
                "The checkout's `node_modules/.bin` in PATH, by its absolute path",
                "it was run",
            ),
            ("of_another_checkout", "Another checkout's `node_modules/.bin` in PATH", "it was run"),
            ("by_a_link_into_the_checkout", "A link at home that leads into the checkout", "it was run"),
            (
                "of_a_relative_path",
                "`node_modules/.bin` and the folder itself in PATH, as relative paths",
                "",
            ),
            (
                "of_another_environment",
                "The programs of an environment that belongs to some project",
                "it was run",
            ),
        )
    )
)
def test_programs_of_checkouts(row: Attack, cli: CommandLine) -> None:
    proof = cli.home / PROOF
    evil = f"touch {proof}; echo 9.9.9"
    match row.value:
        case "of_the_checkout":
            found = program(cli.workspace / "node_modules" / ".bin" / "claude", evil).parent
        case "of_another_checkout":
            found = program(cli.home / "other" / "node_modules" / ".bin" / "claude", evil).parent
        case "by_a_link_into_the_checkout":
            real = program(cli.workspace / "tools" / "claude", evil)
            found = cli.home / "bin"
            found.mkdir()
            (found / "claude").symlink_to(real)
        case "of_a_relative_path":
            program(cli.workspace / "node_modules" / ".bin" / "claude", evil)
            found = Path("node_modules/.bin")
        case _:
            found = program(cli.home / "venv" / "bin" / "claude", evil).parent
            (found.parent / "pyvenv.cfg").touch()
    cli.environment["PATH"] = f"{found}{os.pathsep}.{os.pathsep}{os.environ['PATH']}"
    shown = run(cli, "status")
    assert not proof.exists()
    assert (shown.code, "not asked for its version" in shown.out) == (0, True)


@attacks(
    *(
        Attack(
            f"version_{name}",
            what,
            "`hooks status` ends, in bounded memory, and nothing stays",
            fell,
            value=body,
        )
        for name, what, body, fell in (
            (
                "that_never_comes",
                "A program that says nothing and ignores SIGTERM",
                "trap '' TERM\nwhile :; do sleep 1; done",
                "",
            ),
            ("without_an_end", "A program that prints for ever", "exec yes", "all of it was kept"),
            (
                "held_by_a_child",
                "A program that ends and leaves a child at its output",
                "sleep 600 & echo $! > $HOME/child",
                NEVER_CAME,
            ),
            ("of_controls", "A version that is a control sequence", "printf '\\033[2J\\033]0;x\\007'", ""),
        )
    )
)
def test_versions(row: Attack, cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "_VERSION_SECONDS", 0.5)
    cli.environment["PATH"] = f"{program(cli.home / 'bin' / 'claude', row.value).parent}:{os.environ['PATH']}"
    shown = run(cli, "status")
    assert (shown.code, "\x1b" in shown.out) == (0, False)
    child = cli.home / "child"
    if child.exists():
        with suppress(ProcessLookupError):
            os.kill(int(child.read_text()), signal.SIGKILL)


@attack(
    "The log of hooks is a named pipe, or without an end",
    "`hooks status` counts nothing, and ends",
    fell=NEVER_CAME,
)
def test_log_that_is_no_file(cli: CommandLine) -> None:
    cli.state.mkdir(parents=True)
    log = cli.state / "hooks.log"
    os.mkfifo(log)
    assert "answers     0; errors 0" in run(cli, "status").out
    log.unlink()
    log.symlink_to("/dev/zero")
    assert "answers     0; errors 0" in run(cli, "status").out


@attack(
    "A named pipe, and a link to a file of the user, where a new text is made before it takes an old one's place",
    "Neither is opened: the new text is a file of its own",
    fell="the pipe was waited for",
)
def test_pipe_where_a_new_text_is_made(tmp_path: Path) -> None:
    path, precious = tmp_path / "settings.json", tmp_path / "precious"
    precious.write_text("precious")
    for plant in (os.mkfifo, lambda beside: beside.symlink_to(precious)):
        plant(tmp_path / f".settings.json.{os.getpid()}.part")
        ends_here(lambda: replace_whole(path, "new"))
        assert (path.read_text(), precious.read_text()) == ("new", "precious")
