"""Attacks by what is typed: every slash command, on the screen and in lines, with arguments that nobody types."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.adversarial.attack import Attack, attacks
from tests.console.conftest import no_fixed_waits as no_fixed_waits
from tests.console.real_session import real_live
from tui_agent.frontend.commands.registry import COMMANDS
from tui_agent.plain.commands import offered

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import CommandLine

ARGUMENTS = {
    "nothing": ("nothing behind it", ("",)),
    "long": ("100,000 characters", ("x" * 100_000, "allow " + "y" * 100_000 + " always")),
    "controls": (
        "control sequences",
        ("\x1b[2J\x07\x1b]0;t\x07\x9b2J\u202e", "allow bash(\x1b[31mls) workspace"),
    ),
    "markup": ("markup and patterns", ("[red]<b>[/] [link=x]", "allow bash(" + "*" * 3_000 + ")", "[/]")),
    "surrogates": ("halves of surrogate pairs", ("\ud800", "html \udfff/x", "allow bash(\ud800) session")),
    "nul": ("NUL", ("a\0b", "html a\0b", "allow bash(a\0b) workspace", "\0 open")),
    "paths": (
        "paths that lead elsewhere, or nowhere",
        ("../../x", "html ../nowhere/x", "html " + "x" * 300, "markdown ..", "~"),
    ),
    "homes": ("a home folder that nobody has", ("html ~nobody-of-this-name/x",)),
    "options": ("options", ("-x", "--", "-1", "html -x", "html --force")),
    "numbers": (
        "numbers of any size",
        ("9" * 5_000, "remove " + "9" * 5_000, "remove -1", "remove ²", "1e99", "0", "9223372036854775808"),
    ),
    "not_numbers": ("NaN and infinities", ("nan", "remove nan", "inf", "-inf%", "nan%")),
    "verbs": (
        "words of other commands",
        ("allow", "trust \0", "stop ../../x", "reconnect x", "bash open open"),
    ),
}
AWAY = frozenset(
    {"quit", "suspend", "editor", "new", "clear", "close", "tabs", "tab", "next-tab", "sessions"}
)
"""Commands that leave the session; they are tried in lines, each by itself."""


def rows(where: str) -> list[Attack]:
    return [
        Attack(
            f"{where}_{name}",
            f"Each command {'of the screen' if where == 'screen' else 'in lines'} with {tried}",
            "An answer in words; the console goes on",
            fell="`/export html ~nobody/x` ended the console" if name == "homes" else "",
            slow=name != "homes",
            value=given,
        )
        for name, (tried, given) in ARGUMENTS.items()
    ]


@attacks(*rows("screen"))
async def test_commands_of_the_screen(row: Attack, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with real_live(tmp_path, ["done"] * 400) as console:
        await console.run("go")
        for command in COMMANDS:
            if command.name in AWAY or not command.argument:
                continue
            for argument in row.value:
                await console.say(f"/{command.name} {argument}".rstrip())
                for _ in range(5):
                    if len(console.app.screen_stack) == 1 and console.screen.focused is console.screen.prompt:
                        break
                    await console.press("escape")
                assert len(console.app.screen_stack) == 1, command.name
        for remark in console.app._notifications:
            assert len(remark.message) < 3_000, remark.message[:200]
        await console.say("/title still here")
        await console.until(lambda: console.session.state.session.title == "still here")


def lines_for(given: tuple[str, ...]) -> list[str]:
    """A line for each command and argument; behind those that ask something, what leaves the question."""
    lines = ["hello"]
    for command in offered():
        if command.name in {"quit", "suspend", "new", "clear"}:
            continue
        for argument in given:
            lines += [
                f"/{command.name} {argument}",
                *(["n"] if command.name in {"sessions", "fork", "undo"} else []),
            ]
    return [*lines, *(f"/{argument}" for argument in given), *(f"@{argument}" for argument in given)]


@pytest.mark.process
@attacks(*rows("lines"))
def test_commands_in_lines(row: Attack, cli: CommandLine) -> None:
    typed = "\n".join([*lines_for(row.value), "/title still here", "/status", ""])
    done = subprocess.run(
        [sys.executable, "-m", "tui_agent", "--plain", "--model", cli.scenario('[[turns]]\ntext = "done"\n' * 400)],
        cwd=cli.workspace, env=cli.environ(), input=typed.encode("utf-8", "surrogatepass"),
        capture_output=True, check=False, timeout=300,
    )  # fmt: skip
    out, err = done.stdout.decode(), done.stderr.decode()
    assert (done.returncode, err) == (0, "")
    assert "title: still here" in out
    assert "fault of agent-tui" not in out
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202e]", out)
    answers = [
        line for line in out.split("\n") if not line.startswith((">", "note:", "title:", "The model reads"))
    ]
    assert max(map(len, answers)) < 3_000, max(answers, key=len)[:300]
