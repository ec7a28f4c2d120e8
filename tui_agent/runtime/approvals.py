"""Who is asked before a call runs, and what "for this session" covers.

A command is covered by an earlier approval only where it is one plain call of a program in `_PROGRAMS`, with
options and paths that let it do no more than its name says. Everything else is covered as exactly that call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tui_agent.core.events import Approval
from tui_agent.shell_syntax import Simple, UnreadableCommand, parse
from tui_agent.tools.tool import Effect, Tool


def needs_approval(effect: Effect, approve: Approval) -> bool:
    """ask: writes and commands ask. writes: file edits run, commands ask. all: nothing asks."""
    match effect:
        case Effect.WRITE:
            return approve is Approval.ASK
        case Effect.COMMAND:
            return approve is not Approval.ALL
        case _:
            return False


def session_rule(tool: Tool, arguments: Mapping[str, Any]) -> tuple[str, str]:
    """What allowing this call for the session allows: a rule to compare, and the words that say so."""
    if tool.effect is Effect.WRITE:
        return "effect:write", "every file edit inside the workspace"
    covered = _program_of(str(arguments.get("command", "")))
    if covered is not None:
        name, program = covered
        return f"{tool.name}:program:{name}", f"`{name}` {program.covers()}"
    exact = json.dumps(dict(arguments), sort_keys=True, default=str)
    return f"{tool.name}:exact:{exact}", "exactly this call, again"


def allowed_by(rules: frozenset[str], tool: Tool, arguments: Mapping[str, Any]) -> bool:
    """Whether the operator allowed such a call for the session already."""
    return session_rule(tool, arguments)[0] in rules


_PLACE = "on paths inside the workspace, alone (no pipe, redirection, variable or other command)"


@dataclass(frozen=True)
class _Program:
    """What may follow the name of a program (or of its subcommand) for the call to be harmless."""

    options: frozenset[str] | None = None
    """The options that may stand there; None: any, because none of them runs or writes anything."""
    letters: str = ""
    """One-letter options that may be joined (`-xvs`)."""

    def covers(self) -> str:
        """In words, behind the name: which other calls are meant."""
        if self.options is None:
            return f"with any arguments {_PLACE}"
        if not self.options and not self.letters:
            return f"without options, {_PLACE}"
        known = [f"-{letter}" for letter in self.letters] + sorted(self.options)
        return f"with any of the options {' '.join(known)} and no other, {_PLACE}"

    def takes(self, word: str) -> bool:
        """Whether this option may be there."""
        if self.options is None or word.partition("=")[0] in self.options:
            return True
        # The last letter of joined ones may be followed by its value, which is a number (`-n4`).
        joined = re.fullmatch(r"-([A-Za-z]+)(\d*)", word)
        return joined is not None and all(letter in self.letters for letter in joined[1])


_READS = _Program()


def _only(options: str = "", letters: str = "") -> _Program:
    return _Program(frozenset(options.split()), letters)


_CARGO = (
    "--release --all --workspace --lib --bins --tests --examples --benches --all-targets --all-features "
    "--no-default-features --features --package --test --bin --no-run --no-fail-fast --offline --locked --doc "
    "--exclude --quiet --verbose"
)
_GO = "-v -run -count -race -short -timeout -bench -benchmem -cover -failfast -parallel -json -tags"
_PROGRAMS: dict[str, _Program] = {
    **dict.fromkeys(
        ("ls", "cat", "head", "tail", "wc", "nl", "cut", "tr", "grep", "egrep", "fgrep", "stat", "du", "df", "pwd",
         "echo", "basename", "dirname", "realpath", "readlink", "which", "cmp", "comm", "md5sum", "sha1sum",
         "sha256sum", "uname", "whoami", "id", "true", "false"),
        _READS,
    ),
    # rg: --pre, --hostname-bin and -z run programs. diff: -l runs pr.
    "rg": _only(
        "--files --hidden --no-ignore --count --files-with-matches --files-without-match --fixed-strings --glob "
        "--ignore-case --smart-case --case-sensitive --invert-match --line-number --no-heading --only-matching "
        "--word-regexp --line-regexp --type --type-not --max-count --max-depth --after-context --before-context "
        "--context --multiline --pcre2 --json --sort --stats --regexp",
        "ABCFHIMNPSUceghilmnopqstuvwx",
    ),
    "diff": _only(
        "--unified --brief --recursive --ignore-all-space --ignore-space-change --ignore-blank-lines --side-by-side "
        "--ignore-case --new-file --text --exclude --minimal --report-identical-files",
        "abBcEiNqrsuUwy",
    ),
    # pytest: -p, -c, -o, -W, --rootdir, --pyargs and --basetemp load, configure or delete.
    "pytest": _only(
        "--lf --last-failed --ff --failed-first --nf --sw --stepwise --co --collect-only --tb --maxfail --exitfirst "
        "--durations --durations-min --quiet --verbose --no-header --no-summary --showlocals --setup-show --color "
        "--strict-markers --runxfail --deselect --ignore --count",
        "qvxslknmr",
    ),
    # ruff's -o writes, --fix edits, --config names a file.
    "ruff check": _only(
        "--no-fix --diff --select --ignore --extend-select --statistics --show-files "
        "--output-format --preview --no-cache --quiet --verbose --exit-zero --target-version --line-length",
        "qvn",
    ),
    "ruff format": _only("--check --diff --preview --quiet --verbose --no-cache --target-version --line-length", "qvn"),
    # mypy: --python-executable runs a program, --install-types installs, --config-file and reports name files.
    "mypy": _only(
        "--strict --pretty --no-error-summary --show-error-codes --show-error-context --show-column-numbers "
        "--ignore-missing-imports --no-incremental --check-untyped-defs --disallow-untyped-defs --warn-unreachable "
        "--explicit-package-bases --namespace-packages --python-version --platform --package --module",
        "pmv",
    ),
    # cargo: --config and -Z set programs to run; test: names, and the test program's own options behind `--`.
    "cargo test": _only(f"{_CARGO} --nocapture --test-threads --ignored --include-ignored --exact", "qvrpj"),
    "cargo build": _only(_CARGO, "qvrpj"),
    "cargo check": _only(_CARGO, "qvrpj"),
    # go: -exec, -toolexec, -vettool, -overlay and the linker's flags run or replace things.
    "go test": _only(_GO),
    "go build": _only("-v -race -tags"),
    "go vet": _only("-v -tags -json"),
    "npm test": _only(),
    # git: -c, --output, --ext-diff, --textconv and -O run or write.
    "git status": _only("--short --branch --porcelain --long --ignored --untracked-files", "sbu"),
    "git diff": _only(
        "--stat --cached --staged --name-only --name-status --numstat --shortstat --word-diff --unified --check "
        "--exit-code --quiet --no-color --ignore-all-space --ignore-space-change --no-ext-diff --no-textconv",
        "wbpU",
    ),
    "git log": _only(
        "--oneline --stat --graph --all --decorate --name-only --name-status --max-count --since --until --author "
        "--grep --follow --no-color --patch --reverse --no-merges --format --pretty --no-ext-diff --no-textconv",
        "np",
    ),
}  # fmt: skip
"""Programs that act only as their own name says, with what keeps them so."""

_LEADS_OUT = re.compile(r"(?:^|[=:,])[/~]|^-[^=]*/|(?:^|[/=:,])\.\.(?:[/=:,]|$)|://|^@")
"""A path outside the workspace, an address, or `@file`, from which many programs read more arguments."""


def _program_of(command: str) -> tuple[str, _Program] | None:
    """The entry of `_PROGRAMS` that covers this command; None where nothing but the exact call may."""
    try:
        lists = parse(command).lists
    except UnreadableCommand:
        return None
    if len(lists) != 1 or lists[0].background or len(lists[0].pipelines) != 1:
        return None
    pipeline = lists[0].pipelines[0]
    simple = pipeline.commands[0]
    if len(pipeline.commands) != 1 or pipeline.negated or not isinstance(simple, Simple):
        return None
    if simple.assignments or simple.redirected or not all(word.literal for word in simple.words):
        return None
    words = [word.text for word in simple.words]
    for length in (1, 2):
        name = " ".join(words[:length])
        program = _PROGRAMS.get(name)
        if len(words) >= length and program is not None:
            rest = words[length:]
            fits = all(not word.startswith("-") or word == "--" or program.takes(word) for word in rest)
            return (name, program) if fits and not any(map(_LEADS_OUT.search, rest)) else None
    return None
