"""Programs that are known: the arguments that keep one to its name, those that run another one, those that write.

The larger tables stand in `programs.toml`. Which rule applies to a command is decided in `judge`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from tui_agent.permissions.commands import SimpleCommand, Word, tail_of
from tui_agent.shell_programs import FILE_WRITERS, FRONTS, RUNNERS, SHELLS, WRAPPERS, base_name, interprets


@dataclass(frozen=True)
class Program:
    """Words that may follow a program's name, or its subcommand's, in a call that does no more than the name says."""

    options: frozenset[str] | None = None
    """Options that may stand there; None: any, because none of them runs or writes anything."""
    letters: str = ""
    """One-letter options that may be joined (`-xvs`)."""
    sets: bool = True
    """`NAME=value` may stand there; else only with a number, because the value may be run."""
    changes: bool = False
    """Its calls change different things, so allowing one does not suggest to allow them all."""
    such: str = "other-file"
    """Arguments that it takes, as an example."""
    never: str = "../other-file"
    """Arguments that it does not take, as an example."""

    def takes(self, word: str) -> bool:
        """Tell if this argument may be there."""
        if not word.startswith("-") or word == "--":
            return not word.startswith("@") and (
                self.sets or re.fullmatch(r"[^=]*|\w+=\d*", word) is not None
            )
        if self.options is None or word.partition("=")[0] in self.options:
            return True
        # The last letter of joined ones may be followed by its value, which is a number (`-n4`).
        joined = re.fullmatch(r"-([A-Za-z]+)(\d*)", word)
        return joined is not None and all(letter in self.letters for letter in joined[1])

    def listed(self) -> str:
        """Name the options, for a person."""
        if self.options is None:
            return "any options"
        known = [f"-{letter}" for letter in self.letters] + sorted(self.options)
        return f"the options {' '.join(known)}" if known else "no options"


class Tables(NamedTuple):
    """The programs of `programs.toml`, by name."""

    rules: Mapping[str, Program]
    """Programs that act only as their own name says, with what keeps them so."""
    modules: Mapping[str, Program]
    """Programs that may stand behind `python -m` or `uv run`, which by themselves can run anything."""
    reads: Mapping[str, Program]
    """Programs that only read."""


@cache
def tables() -> Tables:
    """Read the tables, which takes some milliseconds the first time."""
    given = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    groups = {f"@{name}": options for name, options in given.pop("groups").items()}
    found = Tables({}, {}, {})._asdict()
    for table, rows in given.items():
        for names, row in rows.items():
            program = _program(groups, **row)
            for each in (table, *row.get("also", ())):
                found[each].update(dict.fromkeys(names.split(", "), program))
    return Tables(**found)


def _program(
    groups: Mapping[str, str],
    options: str | None = None,
    *,
    examples: Any = (),
    also: Any = (),
    **fields: Any,
) -> Program:
    for name, text in groups.items():
        options = options and options.replace(name, text)
    return Program(None if options is None else frozenset(options.split()), **fields)


LEADS_OUT = re.compile(r"(?:^|[=:,])[/~]|^-[^=]*/|(?:^|[/=:,])\.\.(?:[/=:,]|$)")
"""A path that may be outside the workspace."""
SINKS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/zero"})

_THROUGH = re.compile(r"(?:python[\d.]*|pypy[\d.]*) -m|(?:uv|poetry|pdm|pipenv|rye) run")
_RUNS_A_SCRIPT = re.compile(r"(?:npm|pnpm|yarn|bun) run")
_STEP = re.compile(
    r"(?:test|tests|lint|build|check|typecheck|type-check|types|format|fmt|compile|coverage|unit|e2e)(?:[:-][\w:-]+)?"
)
"""Scripts of a package that are steps of every day's work; the name of another one says nothing."""


def known_program(words: Sequence[Word]) -> tuple[str, Program] | None:
    """Look a command's program up, with its name: one word, with its subcommand two, through another three
    (`python3 -m pytest`, `npm run test`) or four.
    """
    texts = [word.text for word in takewhile(lambda word: word.kind == "literal", words[:4])]
    first, behind = " ".join(texts[:2]), texts[2:]
    if behind and _RUNS_A_SCRIPT.fullmatch(first) and _STEP.fullmatch(behind[0]):
        return f"{first} {behind[0]}", tables().rules["npm test"]
    through = bool(behind) and _THROUGH.fullmatch(first) is not None
    table, names = (tables().modules, behind) if through else (tables().rules, texts)
    for length in (2, 1):
        name = " ".join(names[:length])
        if len(names) >= length and name in table:
            return (f"{first} {name}" if through else name), table[name]
    return None


def stays_inside(word: Word) -> bool:
    """Tell if an argument cannot lead out of the workspace."""
    return word.kind != "unknown" and (word.text in SINKS or not LEADS_OUT.search(word.text))


def becomes_no_option(word: Word) -> bool:
    """Tell if no file that a wildcard finds could be taken for an option."""
    return word.kind == "literal" or word.text[0] not in "-*?["


_CHANGES_THE_SHELL = frozenset({
    "cd", "pushd", "popd", "export", "declare", "typeset", "readonly", "local", "unset", "alias", "shopt", "set",
    "hash", "source", ".", "trap", "exec", "enable", "read", "mapfile", "readarray", "printf", "eval",
})  # fmt: skip


def changes_the_shell(command: SimpleCommand) -> bool:
    """Tell if what comes after it in the same command may mean something else."""
    return command.program in _CHANGES_THE_SHELL


# Programs that do nothing by themselves and only go along with another command.

_NEUTRAL = frozenset({"cd", "pwd", ":", "true", "false", "echo", "test", "[", "set", "exit", "sleep"})
_SET = re.compile(r"[-+][eux]+|[-+]e?u?o|pipefail|errexit|nounset")


def is_neutral(command: SimpleCommand) -> bool:
    """Tell if it changes nothing, so that it may go along with what is allowed (`cd src && …`)."""
    name, rest = command.program, command.words[1:]
    if name not in _NEUTRAL or command.assignments:
        return False
    if name == "set":
        return all(word.kind == "literal" and _SET.fullmatch(word.text) for word in rest)
    if name in {"test", "["}:
        return _tests_plainly(rest)
    return name != "cd" or (len(rest) == 1 and names_a_folder(rest[0]) and stays_inside(rest[0]))


_OF_ONE = re.compile(r"-[a-uwxyzA-QS-Z]")
_OF_TWO = frozenset(
    {"=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"}
)


def _tests_plainly(words: Sequence[Word]) -> bool:
    """Tell if no word can be `-v` or `-R`, which look a variable up: its index may run a command. A word that is not
    known stands behind an operator, or before one of two operands.
    """
    if any(word.text in {"-v", "-R"} for word in words):
        return False
    for place, word in enumerate(words):
        if word.kind == "unknown":
            before = words[place - 1].text if place and words[place - 1].kind == "literal" else ""
            behind = words[place + 1].text if place + 1 < len(words) else ""
            if not (_OF_ONE.fullmatch(before) or before in _OF_TWO or behind in _OF_TWO):
                return False
    return True


def names_a_folder(word: Word) -> bool:
    """Tell if the argument of `cd` is a folder: `-` and `+1` are those before, an option is none."""
    return word.kind == "literal" and word.text[:1] not in {"", "-", "+"}


_HARMLESS_VARIABLE = re.compile(
    r"(?:LANG|LANGUAGE|LC_[A-Z]+|TZ|CI|NO_COLOR|FORCE_COLOR|CLICOLOR|COLUMNS|LINES|PYTHONDONTWRITEBYTECODE|PYTHONUNBUFFERED"
    r"|PYTHONHASHSEED|RUST_BACKTRACE)"
)
_OWN_VARIABLE = re.compile(r"(?!npm_|.*_proxy$)[a-z_][a-z0-9_]*")
_HIDDEN = re.compile(r"[`\[]|\$\(")


def sets_harmlessly(assignment: str, *, for_programs: bool) -> bool:
    """Tell if a variable changes nothing about what runs. `for_programs`: it is handed to them."""
    name, _, value = assignment.partition("=")
    if _HIDDEN.search(value) and "'" in value:
        return False
    pattern = _HARMLESS_VARIABLE if for_programs else _OWN_VARIABLE
    return pattern.fullmatch(name) is not None or _HARMLESS_VARIABLE.fullmatch(name) is not None


# Programs that run another one

_TRANSPARENT = {
    "timeout": ("ks", ("--kill-after", "--signal"), 1), "nice": ("n", ("--adjustment",), 0), "nohup": ("", (), 0),
    "stdbuf": ("ioe", (), 0), "time": ("", (), 0), "ionice": ("cn", (), 0), "setsid": ("", (), 0),
    "command": ("", (), 0), "builtin": ("", (), 0), "env": ("u", ("--unset",), 0),
    "xargs": ("aEIdLnPs", ("--max-args", "--max-procs", "--delimiter", "--replace", "--max-lines"), 0),
}  # fmt: skip
"""Programs that do nothing but run the one after them: letters and names of options with a value, and how many
arguments come before it. Of those in `WRAPPERS` the ones, and the letters, by which nothing else runs or is written."""
_FLAGS = frozenset({"-p", "-f", "-w", "-0", "-r", "-t", "--null", "--no-run-if-empty", "--foreground", "--"})
_OPAQUE = frozenset({
    "doas", "su", "runuser", "pkexec", "busybox", "toybox", "eval", "trap", "coproc", "chroot", "unshare", "nsenter",
    "bwrap", "firejail", "systemd-run", "script", "expect", "flock", "watch", "strace", "ltrace", "gdb", "chrt",
    "taskset", "numactl", "setarch", "setpriv", "parallel", "entr", "ssh", "start-stop-daemon", "daemonize",
    "proxychains", "caffeinate", "nix-shell", "dbus-run-session", "rlwrap", "at", "batch",
    *_TRANSPARENT, *WRAPPERS, *FRONTS, *SHELLS,
})  # fmt: skip
"""Programs that may run what stands in their arguments."""
_RUNS_AFTER = {
    **dict.fromkeys(
        (*RUNNERS, "docker", "podman", "kubectl", "direnv", "nix", "git"), frozenset({"run", "exec", "x"})
    ),
    "find": frozenset({"-exec", "-execdir", "-ok", "-okdir"}),
    **dict.fromkeys(("fd", "fdfind"), frozenset({"-x", "-X", "--exec", "--exec-batch"})),
}  # fmt: skip
"""Programs that run what stands behind one of these words."""


_HAVE_AN_INTERPRETER = frozenset({
    "irb", "lua", "luajit", "awk", "gawk", "mawk", "nawk", "tclsh", "wish", "osascript", "rscript", "r", "julia",
    "swift", "java", "jshell", "groovy", "scala", "dotnet", "elixir", "erl", "escript", "racket", "guile", "sbcl",
    "ghc", "runghc", "pwsh", "powershell", "fish", "csh", "tcsh", "m4", "vi", "vim", "nvim", "ex", "ed", "emacs",
    "sed", "sqlite3", "psql", "mysql",
})  # fmt: skip


def runs_code(name: str) -> bool:
    """Tell if a program of that name is an interpreter, or has one for its arguments."""
    return name in SHELLS or name in _HAVE_AN_INTERPRETER or interprets(name)


def runs_another(name: str) -> bool:
    """Tell if a program of that name may run one that stands in its arguments."""
    return name in _OPAQUE or name in _RUNS_AFTER


def runs_its_input(command: SimpleCommand) -> bool:
    """Tell if what it runs comes from its standard input, so that its own words say nothing."""
    name = base_name(command.program)
    if name in {"xargs", "parallel"}:
        return True
    return runs_code(name.casefold()) and all(word.text.startswith("-") for word in command.words[1:])


def within(command: SimpleCommand) -> SimpleCommand | None:
    """Give the command that a wrapper such as `nice` runs; None if this is no such program, or not clearly."""
    entry = _TRANSPARENT.get(command.program)
    if entry is None or command.assignments:
        return None
    letters, names, positional = entry
    place = 1
    while place < len(command.words):
        word = command.words[place]
        if word.kind != "literal":
            return None
        text = word.text
        if text in _FLAGS:
            place += 1
        elif (len(text) == 2 and text[0] == "-" and text[1] in letters) or text in names:
            place += 2
        elif re.fullmatch(rf"-[{letters or '-'}]\w+|-\d+", text) or text.partition("=")[0] in names:
            place += 1
        elif text.startswith("-"):
            return None
        elif command.program == "env" and "=" in text:
            if not sets_harmlessly(text, for_programs=True):
                return None
            place += 1
        elif positional:
            positional -= 1
            place += 1
        else:
            inner = tail_of(command, place)
            # What xargs adds comes from its input.
            added = (Word("…", "unknown"),) if command.program == "xargs" else ()
            return replace(inner, words=(*inner.words, *added))
    return None


def places_of_programs(command: SimpleCommand) -> Sequence[int]:
    """Find the words that may name a program which is run, for rules that forbid: the first, and all arguments of what
    runs them.
    """
    name, words = base_name(command.program), command.words
    after = _RUNS_AFTER.get(name)
    if name in _OPAQUE:
        start = 1
    elif after is not None:
        start = next((place + 1 for place, word in enumerate(words) if word.text in after), len(words))
    else:
        return (0,) if words else ()
    return (0, *(place for place in range(start, len(words)) if not words[place].text.startswith("-")))


MOST_WRAPPERS = 16
"""Programs that stand before another and run it; nobody writes more of them."""


def hides_its_program(command: SimpleCommand) -> bool:
    """Tell if its words do not say which program runs: `$x`, `sudo $x`, `eval "$x"`, `bash -c "$x"`."""
    words, at = command.words, 0
    for _ in range(MOST_WRAPPERS):
        if at >= len(words):
            return False
        if words[at].kind != "literal":
            return True
        name = base_name(words[at].text)
        if name not in _OPAQUE:
            return False
        # The arguments that stand before its program.
        before = _TRANSPARENT[name][2] if name in _TRANSPARENT else 0
        at += 1
        while at < len(words) and (
            before or words[at].text.startswith("-") or (name == "env" and "=" in words[at].text)
        ):
            before -= before > 0 and not words[at].text.startswith("-")
            at += 1
    return True


def scripts_within(command: SimpleCommand) -> tuple[list[str], bool]:
    """Find shell scripts among the arguments, and tell if running them is all that the command does."""
    words = command.words
    if (
        command.program in SHELLS
        and not command.assignments
        and len(words) == 3
        and words[1].text in {"-c", "-ec", "-euc", "-lc", "-euxc"}
        and words[2].kind == "literal"
    ):
        return [words[2].text], True
    places = places_of_programs(command)
    runner = next((place for place in places if base_name(words[place].text) in _OPAQUE), len(words))
    texts = [word.text for word in words[runner + 1 :] if word.kind == "literal"]
    joined = _joined_by_eval(words[runner:])
    if joined and command.program == "eval" and len(texts) == len(words) - 1:
        return [joined], True
    return [*([joined] if joined else []), *(text for text in texts if re.search(r"[\s;&|]", text))], False


def _joined_by_eval(words: Sequence[Word]) -> str:
    """Give the text that the first `eval` among the words would run: all that follows; "" without one."""
    place = next((place for place, word in enumerate(words) if word.text == "eval"), len(words))
    return " ".join(word.text for word in words[place + 1 :] if word.kind == "literal")


_WRITERS = FILE_WRITERS | {"tar", "vim"}
_WRITE_BY_OPTION = frozenset({
    "curl", "wget", "sort", "shuf", "tree", "gcc", "g++", "cc", "c++", "clang", "ld", "go", "rustc", "openssl", "gpg",
    "git", "pandoc", "split", "tcpdump", "zip", "ssh-keygen",
})  # fmt: skip
_NAMES_ITS_OUTPUT = re.compile(r"-[a-zA-Z]*[oOf]|--out")
_EDITS_IN_PLACE = re.compile(r"-[a-zA-Z]*i|--in-place")


def writes_its_arguments(command: SimpleCommand, place: int = 0) -> bool:
    """Tell if it may change the files that it is given. `place`: that of its program among the words."""
    if place >= len(command.words) or command.words[place].kind != "literal":
        return False
    name = base_name(command.words[place].text)
    if name in {"sed", "perl", "ruby"}:
        return any(_EDITS_IN_PLACE.match(word.text) for word in command.words[1:])
    if name in _WRITE_BY_OPTION:
        return any(_NAMES_ITS_OUTPUT.match(word.text) for word in command.words[1:])
    return name in _WRITERS
