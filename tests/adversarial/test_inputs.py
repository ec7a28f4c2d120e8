"""Attacks by what is given on the command line and in the prompt: lengths, characters and forms nobody types."""

from __future__ import annotations

import copy
import math
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from tests.adversarial.attack import Attack, attack, attacks
from tests.store.session_events import (
    iteration,
    one_of_every_type,
    run_started,
    stamp,
    start,
    write_session,
)
from tui_agent.core.events import Event, SessionStarted
from tui_agent.core.fold import fold
from tui_agent.shell_syntax import UnreadableCommand, parse
from tui_agent.store.lines import decode, encode
from tui_agent.store.redaction import Redactor
from tui_agent.store.session_store import SessionStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
            *(
                (
                    f"home_{name}",
                    f"{' '.join(words)} with a home folder that nobody has",
                    (*words, "~nobody-of-this-name/x", *rest),
                    "as if the program had broken",
                )
                for name, words, rest in (
                    ("config", ("run", "x", "--config"), ()),
                    ("workspace", ("run", "x", "--workspace"), ()),
                    ("recording", ("replay",), ("--print",)),
                    ("import", ("sessions", "import"), ()),
                    (
                        "scenario",
                        ("run", "x", "--model", "scripted:~nobody-of-this-name/x.toml", "--config"),
                        (),
                    ),
                )
            ),
            (
                "dashes",
                "with `--` as the value of an option",
                ("run", "x", "--resume=--"),
                "a traceback in words",
            ),
            ("dashes_of_a_number", "sessions with `--` for a number", ("sessions", "--limit=--"), "as above"),
            (
                "escape",
                "with an escape sequence in a path",
                ("run", "x", "--config", "\x1b[2J"),
                "it was written raw",
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


NUMBERS: tuple[Any, ...] = (2**63, -(2**63) - 1, 10**400, -1, 1e308, math.nan, math.inf, -math.inf)
TEXTS: tuple[Any, ...] = ("\ud800", "a\0b", "x" * 20_000, "\x1b]0;a\x07", "")
OTHERS: tuple[Any, ...] = (None, True, [], {}, {"a": {"b": [2**70, math.nan]}}, ["\udfff"] * 3, [2**64])


def places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield (*before, key)
        yield from places(part, (*before, key))


def with_value(raw: dict[str, Any], place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(raw)
    inner: Any = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return changed


@attack(
    "Each field of each event with each of twenty values: 2^63, 10^400, NaN, infinity, halves of surrogate pairs, NUL, "
    "20,000 characters, lists and tables in their place",
    "What is no event is refused; what is one is folded, written, read again, saved and listed",
    fell="NaN in a duration made a journal that could not be opened; 10^400 tokens and an endless wait ended the run",
    slow=True,
)
def test_any_value_in_any_field(tmp_path: Path) -> None:
    redactor, seen = Redactor({}), 0
    before: list[Event] = [start(), run_started(), *iteration(1)]
    for event in one_of_every_type():
        raw = event.model_dump(mode="json")
        for place in places(raw):
            if place[0] in {"type", "v", "seq"}:
                continue
            for value in (*NUMBERS, *TEXTS, *OTHERS):
                try:
                    made = type(event).model_validate(with_value(raw, place, value))
                except ValidationError:
                    continue
                first = isinstance(made, SessionStarted)
                seen += 1
                journal = stamp([made, *before[1:]] if first else [*before, made, *iteration(2)])
                journal = [redactor.redact(each) for each in journal]
                state = fold(journal)
                assert [decode(encode(each)).type for each in journal] == [each.type for each in journal]
                assert state.session.id or first
                if isinstance(value, int | float) and len(place) == 1:
                    write_session(tmp_path / "sessions" / f"s{seen}", journal, stamped=True)
    assert seen > 2_000
    store = SessionStore(tmp_path)
    assert len(store.rows()) == len(list((tmp_path / "sessions").iterdir()))


@attacks(
    Attack("shell_quotes", "60,000 quotes", "Read, or given up as unreadable, in linear time", value="'\""),
    Attack("shell_groups", "Groups nested 20,000 deep", "As above", value="( "),
    Attack("shell_substitutions", "Substitutions nested 9,000 deep", "As above", value='"$('),
    Attack("shell_expansions", "Expansions nested 9,000 deep", "As above", value="${a:-"),
    Attack("shell_conditions", "5,000 `if`", "As above", value="if a; then "),
    Attack("shell_documents", "5,000 here-documents", "As above", value="<<a\n"),
    Attack("shell_tests", "4,000 `[[`", "As above", value="[[ a "),
    Attack("shell_negations", "9,000 negations", "As above", value="! "),
)
def test_commands_that_recovery_reads(row: Attack) -> None:
    began = time.thread_time()
    command = row.value * (20_000 // len(row.value))
    with suppress(UnreadableCommand):
        parse(command)
    assert time.thread_time() - began < 2
