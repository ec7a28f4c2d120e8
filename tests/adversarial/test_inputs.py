"""Attacks by what is given on the command line and in the prompt: lengths, characters and forms nobody types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.adversarial.attack import Attack, attacks

if TYPE_CHECKING:
    from tests.cli.conftest import CommandLine

LONG = "x" * 100_000


@attacks(
    *[
        Attack(
            f"option_{name}",
            f"agent-tui {tried}",
            "Refused in a few lines, with exit code 2",
            fell,
            value=arguments,
        )
        for name, tried, arguments, fell in (
            ("unknown", "with an option of 100,000 characters", (f"--{LONG}",), "echoed whole"),
            ("of_run", "run with an option of 100,000 characters", ("run", "x", f"--{LONG}"), "echoed whole"),
            ("value", "with 100,000 characters for a policy", ("run", "x", "--policy", LONG), "echoed whole"),
            (
                "number",
                "with a number of 100,000 digits",
                ("run", "x", "--max-iterations", "9" * 100_000),
                "",
            ),
            (
                "number_text",
                "with 100,000 letters for a number",
                ("run", "x", "--max-iterations", LONG),
                "echoed whole",
            ),
            ("cost", "with NaN for the costs", ("run", "x", "--max-cost", "nan"), ""),
            ("negative", "with a negative number of steps", ("run", "x", "--max-iterations", "-1"), ""),
            ("model", "with a model of 100,000 characters", ("run", "x", "--model", f"scripted:{LONG}"), ""),
            (
                "config",
                "with a configuration's path of 100,000 characters",
                ("run", "x", "--config", LONG),
                "",
            ),
            (
                "workspace",
                "with a workspace of 100,000 characters",
                ("run", "x", "--workspace", LONG),
                "exit code 1, as if the program had broken",
            ),
            ("session", "resume with a session of 100,000 characters", ("resume", LONG), ""),
            ("session_up", "resume with a session out of its folder", ("resume", "../../etc"), ""),
            (
                "session_nul",
                "sessions show with a NUL and an escape sequence",
                ("sessions", "show", "a\x1b[2J\x07b"),
                "",
            ),
            ("rule", "explain with a rule of 100,000 characters", ("explain", LONG), ""),
            (
                "recording",
                "replay with a file of 100,000 characters",
                ("replay", LONG, "--print"),
                "exit code 1, as if the program had broken",
            ),
            (
                "analyze",
                "analyze with a folder of 100,000 characters",
                ("analyze", LONG),
                "exit code 1, as if the program had broken",
            ),
            (
                "surrogate",
                "with half of a surrogate pair as a policy",
                ("run", "x", "--policy", "\udcff"),
                "",
            ),
            (
                "export",
                "sessions export to a form that is none",
                ("sessions", "export", "x", "--format", LONG),
                "",
            ),
        )
    ]
)
def test_an_option_that_nobody_types(row: Attack, cli: CommandLine) -> None:
    ended = cli(*row.value)
    assert ended.code == 2, ended.err[-500:]
    said = ended.out + ended.err
    assert 0 < len(said) < 6_000
    assert "Traceback" not in said
    assert "This is a fault" not in said
    assert "\x1b" not in said
