"""What an approval may leave behind: narrow rules first, none that would run what it is given, each in words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tui_agent.core.names import Decision
from tui_agent.permissions.judge import Permissions
from tui_agent.permissions.offers import examples, in_short, in_words, offers, rules_in_words
from tui_agent.permissions.rules import parse_rule

WIDE = [
    ("make check", {"make check *", "make *"}),
    ("git commit -m x", {"git commit *"}),
    ("git status && git push origin main", {"git status *", "git push *"}),
    ("cd src && cargo fmt", {"cargo fmt *"}),
    ("python3 -m pytest -q tests", {"python3 -m pytest *"}),
    ("uv run ruff check src", {"uv run ruff check *"}),
    ("npm run test:unit -- src/a.js", {"npm run test:unit *"}),
    ("cargo test carts", {"cargo test *"}),
    ("npm run build", {"npm run build *"}),
    *[
        (command, set())
        for command in ("python3.11 -c x", "sudo make", "xargs make", "npm run x", "uv run x", "fd x",
                        "python3 a.py", "bash a.sh", "python3 -m pip install x", "python3 -m timeit x", "python3 -m ls",
                        "git -c a=b commit", "/usr/bin/perl x", "A=1 make", "make > log", "$X y", "export PATH=.",
                        "env make", "sh x")
    ],
]  # fmt: skip


@pytest.mark.parametrize(("command", "prefixes"), WIDE)
def test_a_prefix_is_offered_but_never_of_a_program_that_runs_its_arguments(
    command: str, prefixes: set[str], tmp_path: Path
) -> None:
    offered = list(offers("bash", {"command": command}))
    assert len([texts for texts in offered if in_short(texts) == "this command alone"]) == 1
    assert offered[-1] == ("bash",)
    found = {text[5:-1] for texts in offered[:-1] for text in texts if text.endswith(" *)")}
    assert found == prefixes
    for texts in offered:
        rules = [parse_rule(Decision.ALLOW, text, "") for text in texts]
        judged = Permissions(rules, tmp_path).judge("bash", "command", {"command": command})
        # What does not let the call run is left out before it is offered.
        assert judged.decision is Decision.ALLOW or command in {"A=1 make", "$X y", "env make"}


def test_the_examples_of_a_rule_are_judged_as_it_says(tmp_path: Path) -> None:
    for command, prefixes in WIDE:
        for texts in offers("bash", {"command": command}):
            such, never = examples(texts, {"command": command})
            rules = [parse_rule(Decision.ALLOW, text, "") for text in texts]
            judged = [
                [
                    Permissions(rules, tmp_path).judge("bash", "command", {"command": example}).decision
                    for example in re.findall("`(.*?)`", said)
                ]
                for said in (such, never)
            ]
            assert {*judged[0]} <= {Decision.ALLOW}
            assert {*judged[1]} <= {Decision.ASK}
            assert not prefixes & {text[5:-1] for text in texts} or all(judged)


def test_a_rule_about_an_interpreter_that_somebody_wrote_covers_what_it_says(tmp_path: Path) -> None:
    rules = [parse_rule(Decision.ALLOW, "bash(python3 *)", "")]
    for command in ("python3 -m pytest -p other", "python3 a.py"):
        assert Permissions(rules, tmp_path).judge("bash", "command", {"command": command}).decision == "allow"


@pytest.mark.parametrize(
    ("tool", "arguments", "offered"),
    [
        (
            "edit_file",
            {"path": "src/a[1].py"},
            ["edit_file(src/a[[]1].py)", "edit_file(src/**)", "edit_file(**)"],
        ),
        ("write_file", {"path": "../x"}, ["edit_file(**)"]),
        (
            "web_fetch",
            {"url": "https://docs.a.org/x"},
            ["web_fetch(docs.a.org)", "web_fetch(*.a.org)", "web_fetch"],
        ),
        ("web_fetch", {"url": "http://127.0.0.1/x"}, ["web_fetch(127.0.0.1)", "web_fetch"]),
        ("files__read", {}, ["files__read", "files__*"]),
    ],
)
def test_paths_addresses_and_servers_are_offered_from_narrow_to_wide(
    tool: str, arguments: dict[str, str], offered: list[str]
) -> None:
    assert [texts[0] for texts in offers(tool, arguments)] == offered


def test_a_rule_is_said_in_words_for_each_decision() -> None:
    assert rules_in_words(["bash(make all)", "bash(make x)"]).startswith(
        "bash(make all), bash(make x): this command word for word"
    )
    said = [
        in_words(parse_rule(decision, text, ""))
        for decision, text in (
            (Decision.DENY, "bash(rm -rf *)"),
            (Decision.ASK, "edit_file(*.lock)"),
            (Decision.ALLOW, "edit_file(src/**)"),
            (Decision.DENY, "web_fetch"),
        )
    ]
    assert said[0].startswith("`rm -rf *` never run, however it is written")
    assert said[1].startswith("edits of *.lock in every folder always ask")
    assert said[2] == "edits of everything in src/"
    assert said[3] == "calls of web_fetch never run"
