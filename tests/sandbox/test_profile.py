"""The profile for macOS, read as its sandbox reads it: of the rules that match an access, the last holds.

It cannot be run elsewhere; what it says of an access can be told all the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tui_agent.sandbox.mechanisms import Sandbox
from tui_agent.sandbox.policy import SandboxPolicy

_TOKEN = re.compile(r'\s*(?:(#?"(?:[^"\\]|\\.)*")|([()])|([^\s()"#]+))')


def forms(text: str) -> list[Any]:
    """The expressions of a profile: lists of words, texts and lists. Raises where one is not closed."""
    stack: list[list[Any]] = [[]]
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        assert found is not None, f"no token at {text[at : at + 40]!r}"
        at = found.end()
        quoted, bracket, symbol = found.groups()
        if bracket == "(":
            stack.append([])
        elif bracket == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(symbol or unquoted(quoted))
    (whole,) = stack
    return whole


def unquoted(text: str) -> str:
    """What stands in quotes; of an expression (`#"…"`) its pattern."""
    if text.startswith("#"):
        return text[2:-1]
    return re.sub(r"\\(.)", r"\1", text[1:-1])


@dataclass
class Profile:
    """What a profile says."""

    rules: list[Any]

    def allows(self, operation: str, path: Path | str = "") -> bool:
        """Whether it allows an operation, on a path where it has one."""
        decision = ""
        for verb, *rest in self.rules:
            operations = [each for each in rest if isinstance(each, str)]
            filters = [each for each in rest if isinstance(each, list)]
            named = any(
                each == "default" or re.fullmatch(each.replace("*", ".*"), operation) for each in operations
            )
            if named and (not filters or any(_matches(one, str(path)) for one in filters)):
                decision = verb
        return decision == "allow"


def _matches(condition: list[str], path: str) -> bool:
    kind, value = condition
    match kind:
        case "subpath":
            return Path(path).is_relative_to(value)
        case "literal":
            return path == value
        case "regex":
            return re.search(value, path) is not None
        case "target":
            return path == value
    raise AssertionError(f"no filter of a profile: {kind}")


def profile(policy: SandboxPolicy) -> Profile:
    program, option, text, *command = Sandbox("sandbox-exec", policy).wrap(["true"])
    assert (program, option, command) == ("/usr/bin/sandbox-exec", "-p", ["true"])
    version, first, *rules = forms(text)
    assert (version, first) == (["version", "1"], ["allow", "default"])
    assert all(rule[0] in {"allow", "deny"} for rule in rules)
    return Profile([first, *rules])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with keys, a state folder with the temporary one in it, and a checkout beside."""
    home = tmp_path.resolve()
    monkeypatch.setenv("HOME", str(home))
    for folder in (".ssh", "extra/keys", "state/s1/tmp", 'work "a\\b/.git/hooks', 'work "a\\b/keys/sub'):
        (home / folder).mkdir(parents=True)
    workspace = home / 'work "a\\b'
    (workspace / ".git" / "config").write_text("")
    (workspace / ".mcp.json").write_text("{}")
    return home


def policy(home: Path, **how: Any) -> SandboxPolicy:
    return SandboxPolicy.around(
        home / 'work "a\\b',
        home / "state" / "s1" / "tmp",
        state_dir=home / "state",
        hide=('~/work "a\\b/keys/sub', "~/extra/keys"),
        writable=("~/extra",),
        **how,
    )


READ, WRITE, UNLINK = "file-read-data", "file-write-data", "file-write-unlink"
ACCESSES = [
    ("WORK/src/a.py", (READ, WRITE, UNLINK)),
    ("state/s1/tmp/x", (READ, WRITE, UNLINK)),
    ("extra/x", (READ, WRITE, UNLINK)),
    ("plain.txt", (READ,)),
    (".ssh/id_ed25519", ()),
    ("state/s1/events.jsonl", ()),
    ("WORK/.git/hooks/post-checkout", (READ,)),
    ("WORK/.git/config", (READ,)),
    ("WORK/.mcp.json", (READ,)),
    ("WORK/.git/index", (READ, WRITE, UNLINK)),
    ("WORK/.git", (READ, WRITE)),
    ("WORK/keys/sub/x", ()),
    ("WORK/keys", (READ, WRITE)),
    ("WORK", (READ, WRITE)),
    ("extra/keys/x", ()),
    ("/dev/null", (READ, WRITE, UNLINK)),
    ("/etc/hosts", (READ,)),
]


@pytest.mark.parametrize(("path", "allowed"), ACCESSES, ids=[path for path, _ in ACCESSES])
def test_a_path_can_be_read_written_and_renamed_where_it_should(
    place: Path, path: str, allowed: tuple[str, ...]
) -> None:
    full = place / path.replace("WORK", 'work "a\\b')
    told = profile(policy(place))
    assert tuple(each for each in (READ, WRITE, UNLINK) if told.allows(each, full)) == allowed


@pytest.mark.parametrize("network", [False, True])
def test_the_network_is_shut_unless_it_is_allowed(place: Path, network: bool) -> None:
    assert profile(policy(place, network=network)).allows("network-outbound") is network


def test_only_processes_of_the_same_sandbox_are_signalled_and_looked_at(place: Path) -> None:
    told = profile(policy(place))
    assert [told.allows("signal", target) for target in ("self", "others")] == [True, False]
    assert told.allows("signal", "same-sandbox")
    assert not told.allows("process-info-pidinfo", "others")
