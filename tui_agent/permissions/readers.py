"""Commands that only read: programs that under the options given here write nothing, run nothing and send nothing.

A list of what is known to be harmless, never of what is harmful. What is not in it is asked about as ever. Whether a
command may run unasked for that is decided in `unasked`; what git's own settings would run in `programs_there`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from tui_agent.permissions.commands import SimpleCommand, Word
from tui_agent.permissions.programs import sets_harmlessly, tables


@dataclass(frozen=True)
class Reads:
    """The files that a command which only reads opens."""

    program: str
    """Whose file has to lie outside of the workspace; "" for what the shell does by itself."""
    walks: bool = False
    """It reads the content of files that its words do not name: those of a folder, or of a repository."""
    git: bool = False
    """Git does it, whose settings may name programs."""
    opens: tuple[Word, ...] = ()
    """Of its words, those that may be files."""
    variables: frozenset[str] = frozenset()
    """Those that it prints."""


_BUILTINS = frozenset({"echo", "pwd", "true", "false", ":", "test", "[", "type", "printf", "command"})
"""Commands that bash does itself, whatever lies in PATH."""
_PLAIN = frozenset({
    "ls", "cat", "head", "tail", "nl", "cut", "tr", "fold", "expand", "unexpand", "rev", "tac", "paste", "join", "comm",
    "cmp", "od", "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "cksum", "basename",
    "dirname", "realpath", "readlink", "stat", "df", "uname", "whoami", "id", "groups", "nproc", "seq", "which",
    "grep", "egrep", "fgrep", "pwd",
})  # fmt: skip
"""No option of theirs writes, runs or sends: the manuals of coreutils, grep, debianutils and bash."""
_SAYS = frozenset({"echo", "true", "false", ":"})
"""They open no file, whatever their words; a wildcard lists names."""
_VARIABLE = re.compile(r"\$\{?#?([A-Za-z_]\w*)")
_VERSIONS = re.compile(
    r"(?:python|pypy)[\d.]*|node|ruby|perl|gcc|g\+\+|clang|make|cmake|git|bash|sed|grep|rg|jq"
)
"""Programs that say their version and look at no file of the tree for it. rustc, cargo, go, npm do: a toolchain named
there runs in their place."""


_GIT_WALKS = frozenset({"diff", "log", "show", "blame", "cat-file", "grep"})
"""Those that print what files hold, or held."""
_LISTS: dict[str, Sequence[re.Pattern[str]]] = {
    "branch": (
        re.compile(r"-(?:a|r|v|vv|av|avv|rv)|--(?:list|all|remotes|verbose|show-current|merged|no-merged)"),
    ),
    "tag": (re.compile(r"-l|-n\d*|--list|--sort=[\w:-]+|--merged|--no-merged"),),
    "stash": (re.compile(r"list"),),
    "remote": (re.compile(r"-v|--verbose"),),
    "worktree": (re.compile(r"list"), re.compile(r"--porcelain")),
    "reflog": (re.compile(r"show"), re.compile(r"-n\d*|--\w*date=\w+|-\d+")),
    "config": (
        re.compile(r"--get|--get-all|--list|-l"),
        re.compile(r"\w[\w.-]*|--local|--global|--show-origin"),
    ),
}
"""Subcommands that only list if all of their words are of these patterns, the first word of the first."""
_MUST_SAY = frozenset({"stash", "config"})
"""Those that do something else without a word."""
_GIT_BEFORE = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"})
_COUNT = re.compile(r"-\d+")
_SORTS = re.compile(r"-(?:k[\d.,bdfgiMhnRrV]+|t.|t\\t)")
_FIND_NUMBER = re.compile(r"-\d+[cwbkMG]?")
_FIND_SIGNS = frozenset({"-H", "-L", "-P"})
_FIND_TIMES = re.compile(
    r"-newer[aBcm][aBcmt]|-anewer|-cnewer|-noleaf|-nogroup|-nouser|-mount|-used|-lname|-fstype"
)


def reads_only(command: SimpleCommand) -> Reads | None:
    """Say what a command reads; None if it is not known to do nothing else. A wildcard counts as the file that it
    stands for: whoever asks looks whether one of them is named like an option.
    """
    words = command.words
    if not words or words[0].kind != "literal" or not all(map(_harmless, command.assignments)):
        return None
    name = _name(words[0].text)
    rest = words[1:]
    if not name or (any(word.kind == "unknown" for word in rest) and name != "echo"):
        return None
    texts = [word.text for word in rest]
    program = "" if name in _BUILTINS and "/" not in words[0].text else name
    if name == "git":
        return _git(rest)
    special = _SPECIAL.get(name)
    if special is not None:
        files = special(texts)
        opened = () if files is None else tuple(word for word in rest if word.text in files)
        return None if files is None else Reads(program, opens=opened)
    if name in _SAYS:
        names = tuple(word for word in rest if word.kind == "glob")
        found = (_VARIABLE.findall(word.text) for word in rest if word.kind == "unknown")
        return Reads(program, opens=names, variables=frozenset(chain.from_iterable(found)))
    if len(texts) == 1 and texts[0] in {"--version", "-V"} and _VERSIONS.fullmatch(name):
        return Reads(name)
    if name in _PLAIN:
        walks = name.endswith("grep") and _recursive(texts)
        return Reads(program, walks=walks, opens=_opened(name, rest))
    known = tables().reads.get(name)
    if known is None:
        return None
    if not all(known.takes(text) or _of_its_own(name, text) for text in texts):
        return None
    if not _CHECKS.get(name, _anything)(texts):
        return None
    walks = name == "rg" or (name == "diff" and _recursive(texts))
    return Reads(name, walks=walks, opens=_opened(name, rest))


_OPENS_NOTHING = frozenset({
    "basename", "dirname", "seq", "which", "tr", "uname", "whoami", "id", "groups", "nproc", "pwd", "date",
})  # fmt: skip
_SEPARATORS = {"cut": "-d", "sort": "-t"}


def _opened(name: str, words: Sequence[Word]) -> tuple[Word, ...]:
    """Give the words that may be files: not a pattern, a separator, a script."""
    if name in _OPENS_NOTHING:
        return ()
    separator = _SEPARATORS.get(name)
    if separator is not None:
        return tuple(word for word in words if not word.text.startswith(separator) and word.text != "/")
    if name in {"grep", "egrep", "fgrep", "rg"} and not any(
        _NAMES_A_PATTERN.match(word.text) for word in words
    ):
        pattern = next((word for word in words if not word.text.startswith("-")), None)
        return tuple(word for word in words if word is not pattern)
    return tuple(words)


_NAMES_A_PATTERN = re.compile(r"-[A-Za-z]*[ef]|--reg|--file")


def _harmless(assignment: str) -> bool:
    return sets_harmlessly(assignment, for_programs=True)


def _name(word: str) -> str:
    """Give the program's name; "" for a file that is named by a path, other than one of the system's."""
    folder, _, name = word.rpartition("/")
    return name if folder in {"", "/bin", "/usr/bin"} else ""


def _recursive(texts: Sequence[str]) -> bool:
    return any(
        text.startswith(("--rec", "--dereference-rec", "--dir", "-d")) or re.match(r"-[A-Za-z]*[rR]", text)
        for text in texts
    )


def _of_its_own(name: str, text: str) -> bool:
    """Know options that no table can list: those with a number or a key joined to them."""
    if name == "sort":
        return _SORTS.fullmatch(text) is not None
    if name == "find":
        return (
            text in _FIND_SIGNS
            or _FIND_NUMBER.fullmatch(text) is not None
            or _FIND_TIMES.fullmatch(text) is not None
        )
    return False


def _anything(_: Sequence[str]) -> bool:
    return True


def _one_file(texts: Sequence[str]) -> bool:
    """`uniq IN OUT` writes OUT."""
    return len([text for text in texts if not text.startswith("-") or text == "-"]) <= 1 and "--" not in texts


def _shows_a_date(texts: Sequence[str]) -> bool:
    """An operand of `date` sets the clock, unless it is a format."""
    behind = {place + 1 for place, text in enumerate(texts) if text in {"-d", "-r", "--date", "--reference"}}
    return all(place in behind or text.startswith(("+", "-")) for place, text in enumerate(texts))


def _imports_nothing(texts: Sequence[str]) -> bool:
    return not any(re.search(r"\b(?:import|include|input_filename|debug)\b", text) for text in texts)


_CHECKS: dict[str, Callable[[Sequence[str]], bool]] = {
    "uniq": _one_file,
    "date": _shows_a_date,
    "jq": _imports_nothing,
}


# Programs whose words need to be read: the files that they open; None if they may do more than read


def _tests(texts: Sequence[str]) -> Sequence[str] | None:
    """`-v` and `-R` look a variable up, and its index may run a command."""
    return None if {"-v", "-R"}.intersection(texts) else texts


def _prints(texts: Sequence[str]) -> Sequence[str] | None:
    """`-v` and `%n` set a variable, such as PATH."""
    sets = not texts or texts[0].startswith("-") or re.search(r"%[^a-zA-Z%]*[hjlLtz]*n", texts[0])
    return None if sets else ()


def _says_what_it_is(texts: Sequence[str]) -> Sequence[str] | None:
    asks = len(texts) > 1 and texts[0] in {"-v", "-V"} and not any(text.startswith("-") for text in texts[1:])
    return () if asks else None


_SED_ADDRESS = r"(?:\d+|\$|/(?:[^/\\\n]|\\[^\n])*/I?)"
_SED_COMMAND = (
    rf"(?:{_SED_ADDRESS}(?:,(?:{_SED_ADDRESS}|[+~]\d+))?)?!?\s*"
    r"(?:[pdqQlG=hHxgnND]|s/(?:[^/\\\n]|\\[^\n])*/(?:[^/\\\n]|\\[^\n])*/[gpiIm\d]*)"
)
_SED_SCRIPT = re.compile(rf"\s*(?:{_SED_COMMAND}\s*(?:;\s*|$))+")
_SED_FLAGS = re.compile(r"-[nErsuz]+|--quiet|--silent|--regexp-extended")


def _edits_nothing(texts: Sequence[str]) -> Sequence[str] | None:
    """`sed` with scripts that print, delete and replace: `w`, `W`, `r`, `e` and `s///e` write or run, `-i` edits."""
    scripts, files = list[str](), list[str]()
    given = any(text in {"-e", "-ne"} for text in texts)
    words = iter(texts)
    for text in words:
        if text in {"-e", "-ne"}:
            scripts.append(next(words, ""))
        elif text.startswith("-") and text != "-":
            if not _SED_FLAGS.fullmatch(text):
                return None
        elif not scripts and not given:
            scripts.append(text)
        else:
            files.append(text)
    known = scripts and all(len(one) <= _LONGEST_SCRIPT and _SED_SCRIPT.fullmatch(one) for one in scripts)
    return files if known else None


_LONGEST_SCRIPT = 500
_AWK_RUNS = re.compile(
    r"[|>@`]|\\\n|\b(?:system|getline|close|fflush|ARGV|ARGC|ENVIRON|PROCINFO|SYMTAB|FUNCTAB|function|func|while|for"
    r"|do|include|load)\b"
)
_AWK_VARIABLE = re.compile(r"[A-Za-z_]\w*=[\w.,:/ -]*")


def _computes(texts: Sequence[str]) -> Sequence[str] | None:
    """`awk` with a program that holds no pipe, redirection, call of another program, file name or loop."""
    place = 0
    while place < len(texts) and texts[place].startswith("-"):
        joined = texts[place].startswith("-F") and texts[place] != "-F"
        if not joined and texts[place] not in {"-F", "-v"}:
            return None
        if texts[place] == "-v" and not _AWK_VARIABLE.fullmatch("".join(texts[place + 1 : place + 2])):
            return None
        place += 1 if joined else 2
    files = texts[place + 1 :]
    if place >= len(texts) or any(text.startswith("-") for text in files):
        return None
    pattern, brace, action = texts[place].partition("{")
    # Only what prints redirects, and a pattern does not.
    compared = pattern.replace(">", " ") + brace + re.sub(r"(?<=[\w\s)\]])>=(?=[\w\s($])", " ", action)
    program = re.sub(r"(?<!\|)\|\|(?!\|)", " ", compared)
    return None if len(program) > _LONGEST_SCRIPT or _AWK_RUNS.search(program) else files


_SPECIAL: dict[str, Callable[[Sequence[str]], Sequence[str] | None]] = {
    "test": _tests,
    "[": _tests,
    "printf": _prints,
    "command": _says_what_it_is,
    "type": lambda texts: () if texts else None,
    "sed": _edits_nothing,
    **dict.fromkeys(("awk", "gawk", "mawk"), _computes),
}


# Git


def _git(words: Sequence[Word]) -> Reads | None:
    place = 0
    while place < len(words) and (words[place].text in _GIT_BEFORE or words[place].text == "-C"):
        place += 2 if words[place].text == "-C" else 1
    if place >= len(words) or words[place].kind != "literal":
        return None
    name, rest = words[place].text, words[place + 1 :]
    texts = [word.text for word in rest]
    if name in {"--version", "version"}:
        return None if texts else Reads("git")
    # The program that checks a signature would run.
    signed = any("%G" in text or "%(signature" in text for text in texts)
    if signed:
        return None
    fits = _lists(name, texts) if name in _LISTS else _shows(name, texts)
    return Reads("git", walks=_prints_files(name, texts), git=True, opens=tuple(words)) if fits else None


def _lists(name: str, texts: Sequence[str]) -> bool:
    patterns = _LISTS[name]
    starts = patterns[0].fullmatch(texts[0]) is not None if texts else name not in _MUST_SAY
    return starts and all(any(pattern.fullmatch(text) for pattern in patterns) for text in texts)


def _shows(name: str, texts: Sequence[str]) -> bool:
    known = tables().reads.get(f"git {name}")
    if known is None:
        return False
    options = _before_paths(texts)
    return all(known.takes(text) or _COUNT.fullmatch(text) or _of_git(name, text) for text in options)


def _before_paths(texts: Sequence[str]) -> Sequence[str]:
    return texts[: texts.index("--")] if "--" in texts else texts


def _prints_files(name: str, texts: Sequence[str]) -> bool:
    """Tell if it prints what files hold, or held, that its words do not name."""
    options = _before_paths(texts)
    if name == "log":
        return any(_SHOWS_CONTENT.match(text) for text in options)
    return name in _GIT_WALKS and not (name == "diff" and _SHOWS_NAMES.intersection(options))


_SHOWS_CONTENT = re.compile(
    r"-[a-zA-Z]*[pULSG]|--(?:patch|unified|cc|word-diff|function-context|raw)|--format|--pretty"
)
_SHOWS_NAMES = frozenset({"--stat", "--name-only", "--name-status", "--numstat", "--shortstat", "--quiet"})


def _of_git(name: str, text: str) -> bool:
    """Know options with a value joined to them: `-U5`, `-Sword`, `-L1,5:file`, `-M90%`, `-u no`."""
    if name in {"log", "show", "diff"} and re.fullmatch(r"-(?:[UMC]\d*%?|[SGL][^\s].*)", text):
        return True
    return (name == "blame" and re.fullmatch(r"-L.+|-[MC]\d*", text) is not None) or (
        name == "status" and text in {"-uno", "-unormal", "-uall"}
    )
