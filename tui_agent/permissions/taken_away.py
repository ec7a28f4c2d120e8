"""Places that a command would delete or write over, by its own words; nothing is looked up yet.

Read are the shell's words, scripts in them (`sh -c`, here-documents, `python -c`), what a pipe hands to `xargs`, and
variables that the command itself sets. Not read are files that it runs: scripts, a `Makefile`.
"""

from __future__ import annotations

import glob
import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile, islice, pairwise, takewhile
from pathlib import Path
from typing import Literal

from tui_agent.disk import with_home
from tui_agent.permissions.commands import SimpleCommand, Word, read_command
from tui_agent.permissions.replaced_words import known_words, values_of
from tui_agent.shell_programs import SHELLS, base_name, interprets

What = Literal["any", "untracked", "ignored", "all untracked", "unsaved"]
"""Of the files below a place; `untracked` are not ignored, `unsaved` changed since they were put into git's index."""

_MOST = 5_000
"""Files that one wildcard stands for."""
_DEEPEST = 4
"""Scripts within scripts."""


@dataclass(frozen=True)
class Aim:
    """Something that a command takes away: `path`, or all of a kind below it."""

    path: Path
    what: What = "any"
    names: tuple[str, ...] = ()
    """Patterns, one of which a file's name must match; () for any name."""


_DELETE = frozenset({"rm", "shred", "srm", "truncate", "unlink"})
_DELETES = re.compile(rf"\b(?:{'|'.join(sorted(_DELETE))})\b")
_TAKE_AWAY = _DELETE | {
    "cp",
    "curl",
    "dd",
    "fd",
    "find",
    "git",
    "install",
    "ln",
    "mv",
    "rsync",
    "tee",
    "wget",
}
_RUN_ANOTHER = frozenset({
    "busybox", "chrt", "command", "coproc", "doas", "env", "exec", "fakeroot", "flock", "ionice", "nice", "nohup",
    "parallel", "setsid", "stdbuf", "sudo", "taskset", "time", "timeout", "toybox", "xargs",
})  # fmt: skip
_NAMED_BY_INPUT = frozenset({"xargs", "parallel"})
_LIST_ALL = frozenset({"fd", "find", "git", "ls"})
"""Programs whose output names files, those of the folder if no other is given."""
_LIST_WORDS = frozenset({"echo", "printf", "grep", "rg"})
"""Programs that print the names in their arguments, or pass their input on."""


def aims(command: str, folder: Path) -> Iterator[Aim]:
    """List what a command takes away if it begins in `folder`, an absolute path. Wildcards are followed."""
    yield from _Script(command, folder, 0).aims()


@dataclass
class _Script:
    """A shell script that is gone through from its beginning to its end."""

    text: str
    folder: Path
    depth: int
    listed: list[Aim] = field(default_factory=list)
    """Names from the last program that lists files, for the one behind the pipe."""
    said: str = ""
    """The words of the last `echo`."""

    def aims(self) -> Iterator[Aim]:
        if self.depth > _DEEPEST:
            return
        reading = read_command(self.text)
        values = values_of(self.text, reading)
        for one in reading.commands:
            program, given = _in_the_end(one)
            known = [list(known_words(word, values, self.folder)) for word in given]
            words = [word for found in known for word in found]
            if program == "cd" and len(words) == 1:
                self.folder = _joined(self.folder, words[0].text)
            elif program in SHELLS or program in {"eval", "trap"}:
                yield from self._of_scripts(self._scripts(program, words))
            elif interprets(program):
                for code in self._scripts(program, words):
                    yield from self._of_code(code)
            else:
                by_input = _NAMED_BY_INPUT & {base_name(word.text) for word in one.words}
                if program in _DELETE and (by_input or [] in known):
                    yield from self.listed
                yield from _of_program(program, _Arguments(words), self.folder)
            self._note(program, words)
        for redirection in reading.redirections:
            if redirection.writes and not redirection.appends:
                yield from _places(list(known_words(redirection.path, values, self.folder)), self.folder)

    def _note(self, program: str, words: Sequence[Word]) -> None:
        """Keep what a program lists, or says."""
        given = _Arguments(words)
        if program in {"echo", "printf"}:
            self.said = "\n".join(word.text for word in words)
        if program == "find":
            self.listed = list(_found(given, self.folder))
        elif program == "git":
            self.listed = [Aim(self.folder, "all untracked" if given.has("o", "--others") else "unsaved")]
        elif program == "cat" and given.plain:
            self.listed = []
        elif program in _LIST_ALL | _LIST_WORDS:
            kept = [Aim(self.folder)] if program in _LIST_ALL else self.listed
            self.listed = list(_places(given.plain, self.folder)) or kept

    def _scripts(self, program: str, words: Sequence[Word]) -> list[str]:
        """List what a shell or another interpreter is given to run: as an argument, by a here-document or a pipe."""
        if program in {"eval", "trap"}:
            return [" ".join(word.text for word in words[: 1 if program == "trap" else None])]
        option = r"-[a-z]*c" if program in SHELLS else r"-[a-zA-Z]*[ceEr]|--eval|--run|eval"
        given = [script.text for before, script in pairwise(words) if re.fullmatch(option, before.text)]
        if given or any(not word.text.startswith("-") for word in words):
            return given
        return list(_bodies(self.text)) or [self.said]

    def _of_scripts(self, scripts: Sequence[str]) -> Iterator[Aim]:
        for script in scripts:
            yield from _Script(script, self.folder, self.depth + 1).aims()

    def _of_code(self, code: str) -> Iterator[Aim]:
        """Take the strings of a program in another language for places, or commands, if it deletes or runs any."""
        strings = [first or second for first, second in _QUOTED.findall(code)]
        if _RUNS.search(code):
            yield from self._of_scripts([*(one for one in strings if " " in one), shlex.join(strings)])
        if _DESTROYS.search(code):
            words = [Word(one, "glob" if re.search(r"[*?]", one) else "literal") for one in strings if one]
            yield from _places([*words, *(Word(one, "glob") for one in _GLOBBED.findall(code))], self.folder)


_HERE = re.compile(r"<<-?[^\S\n]*(['\"]?)(\w+)\1")
_HERE_STRING = re.compile(r"<<<[^\S\n]*(?:'([^']*)'|\"([^\"]*)\"|(\S+))")
_MOST_BODIES = 20
_QUOTED = re.compile(r"'([^'\n]*)'|\"([^\"\n]*)\"")
_GLOBBED = re.compile(r"<([^<>\s]*\*[^<>\s]*)>")
"""Perl's own way to name many files."""
_DESTROYS = re.compile(
    r"unlink|rmtree|os\.(?:remove|rename|replace|truncate)|shutil\.(?:move|copy)|rmdir|\brm_|rmSync|\.rm\(|FileUtils"
    r"|truncate|write_text|write_bytes|writeFile|copyFile|rename(?:Sync)?\(|File\.(?:delete|write)|file_put_contents"
    r"|open\([^()]{0,300},\s?(?:mode\s?=\s?)?['\"][wx+>]|open\s?\(?[^;]{0,100}['\"]\s?>"
)
"""By what a program in Python, Perl, Ruby, Node or PHP deletes, or writes over."""
_RUNS = re.compile(r"system|subprocess|popen|exec|spawn|\bsh\b", re.IGNORECASE)


def _bodies(text: str) -> Iterator[str]:
    """List the here-documents and here-strings of a script."""
    for found in islice(_HERE_STRING.finditer(text), _MOST_BODIES):
        yield found[1] or found[2] or found[3]
    for begun in islice(_HERE.finditer(text), _MOST_BODIES):
        lines = text[begun.end() :].split("\n")[1:]
        yield "\n".join(takewhile(lambda line, end=begun[2]: line.strip("\t") != end, lines))  # type: ignore[misc]


def _in_the_end(command: SimpleCommand) -> tuple[str, Sequence[Word]]:
    """Name the program that wrappers (`sudo`, `env`, `xargs`) run in the end, with its arguments."""
    words = command.words
    if words and base_name(words[0].text) in _RUN_ANOTHER:
        wanted = _TAKE_AWAY | SHELLS | {"cd"}
        names = [base_name(word.text) for word in words]
        place = next((at for at, name in enumerate(names) if name in wanted or interprets(name)), len(words))
        words = words[place:]
    return (base_name(words[0].text), words[1:]) if words and words[0].kind == "literal" else ("", ())


# Programs


@dataclass(frozen=True)
class _Arguments:
    """The words behind a program, told apart."""

    words: Sequence[Word]

    @property
    def plain(self) -> list[Word]:
        """Words that are no option."""
        return [word for word in self.words if not word.text.startswith("-")]

    @property
    def after(self) -> list[Word]:
        """Words that follow `--`."""
        texts = [word.text for word in self.words]
        return list(self.words[texts.index("--") + 1 :]) if "--" in texts else []

    def has(self, *options: str) -> bool:
        """Tell if one of these is given; a single letter also among others (`-fdx`)."""
        given = [word.text for word in self.words if word.text.startswith("-")]
        letters = "".join(one[1:] for one in given if not one.startswith("--"))
        return any(one in given if len(one) > 1 else one in letters for one in options)

    def of(self, *options: str) -> list[Word]:
        """List the values of options, joined to them or behind them."""
        found: list[Word] = []
        for place, word in enumerate(self.words):
            name, joined, value = word.text.partition("=")
            if word.text in options:
                found += self.words[place + 1 : place + 2]
            elif joined and name in options:
                found.append(Word(value, word.kind))
        return found


def _of_program(program: str, given: _Arguments, folder: Path) -> Iterator[Aim]:
    plain = given.plain
    match program:
        case "mv" | "cp" | "install" | "rsync" if not given.has("n", "--no-clobber"):
            into = given.of("-t", "--target-directory")
            yield from _written_over([*(one for one in plain if one not in into), *into], folder)
            if program == "rsync" and any(one.text.startswith("--del") for one in given.words):
                yield from _places(plain[-1:], folder)
        case "ln" if given.has("f", "--force"):
            yield from _written_over(plain, folder)
        case "find" if given.has("-delete") or _deletes(given, "-exec", "-execdir", "-ok", "-okdir"):
            yield from _found(given, folder)
        case "fd" if _deletes(given, "-x", "-X", "--exec", "--exec-batch"):
            yield Aim(folder)
        case "git":
            yield from _of_git(list(given.words), folder)
        case _:
            yield from _places(_named(program, given), folder)


def _named(program: str, given: _Arguments) -> Sequence[Word]:
    """List the arguments by which a program is told what to delete, or to write over."""
    match program:
        case _ if program in _DELETE:
            return given.plain
        case "tee" | "sponge":
            return given.plain if not given.has("a", "--append") else ()
        case "tar":
            return given.plain if given.has("--remove-files") else ()
        case "zip":
            return given.plain[1:] if given.has("m", "--move") else ()
        case "dd":
            return [Word(one.text[3:]) for one in given.plain if one.text.startswith("of=")]
        case "curl":
            return given.of("-o", "--output")
        case "wget":
            return given.of("-O", "--output-document")
    return ()


def _deletes(given: _Arguments, *options: str) -> bool:
    """Tell if what stands behind one of these options deletes files."""
    behind = dropwhile(lambda word: word.text not in options, given.words)
    return any(_DELETES.search(word.text) for word in behind)


def _found(given: _Arguments, folder: Path) -> Iterator[Aim]:
    """List the folders of a `find`, with the names that it looks for."""
    places = list(takewhile(lambda word: not word.text.startswith(("-", "(", "!")), given.words))
    narrowed = not any(word.text in {"!", "-not", "-o", "-or"} for word in given.words)
    names = tuple(word.text for word in given.of("-name", "-iname")) if narrowed else ()
    for aim in _places(places or [Word(".")], folder):
        yield Aim(aim.path, aim.what, names)


def _written_over(plain: Sequence[Word], folder: Path) -> Iterator[Aim]:
    if len(plain) < 2:
        return
    *sources, target = plain
    for place in _expanded(target, folder):
        if place.is_dir():
            for source in sources:
                yield from (Aim(place / one.name) for one in _expanded(source, folder))
        else:
            yield Aim(place)


# Git


def _of_git(words: list[Word], folder: Path) -> Iterator[Aim]:
    while words and words[0].text.startswith("-"):
        option = words.pop(0).text
        if option in {"-C", "-c", "--git-dir", "--work-tree"} and words:
            value = words.pop(0).text
            folder = _joined(folder, value) if option == "-C" else folder
    if words:
        given = _Arguments(words[1:])
        yield from _GIT.get(words[0].text, _nothing)(given, folder)


def _nothing(_: _Arguments, __: Path) -> Iterator[Aim]:
    return iter(())


def _clean(given: _Arguments, folder: Path) -> Iterator[Aim]:
    if not given.has("n", "--dry-run"):
        what: What = "all untracked" if given.has("x") else "ignored" if given.has("X") else "untracked"
        yield from _places(given.after or given.plain or [Word(".")], folder, what)


def _checkout(given: _Arguments, folder: Path) -> Iterator[Aim]:
    named = given.after or [word for word in given.plain if any(True for _ in _expanded(word, folder))]
    if named:
        yield from _places(named, folder, "unsaved")
    elif given.has("f", "--force"):
        yield Aim(folder, "unsaved")


def _restore(given: _Arguments, folder: Path) -> Iterator[Aim]:
    if not given.has("S", "--staged") or given.has("W", "--worktree"):
        yield from _places(given.after or given.plain, folder, "unsaved")


def _reset(given: _Arguments, folder: Path) -> Iterator[Aim]:
    if given.has("--hard", "--merge", "--reset"):
        yield Aim(folder, "unsaved")


def _switch(given: _Arguments, folder: Path) -> Iterator[Aim]:
    if given.has("f", "--force", "--discard-changes"):
        yield Aim(folder, "unsaved")


def _stash(given: _Arguments, folder: Path) -> Iterator[Aim]:
    if not given.plain or given.plain[0].text in {"push", "save"}:
        if given.has("a", "--all"):
            yield Aim(folder, "all untracked")
        elif given.has("u", "--include-untracked"):
            yield Aim(folder, "untracked")


def _remove(given: _Arguments, folder: Path) -> Iterator[Aim]:
    if not given.has("--cached"):
        yield from _places(given.after or given.plain, folder)


def _move(given: _Arguments, folder: Path) -> Iterator[Aim]:
    if given.has("f", "--force"):
        yield from _written_over(given.plain, folder)


def _worktree(given: _Arguments, folder: Path) -> Iterator[Aim]:
    if given.plain and given.plain[0].text == "remove" and given.has("f", "--force"):
        yield from _places(given.plain[1:], folder)


_GIT: dict[str, Callable[[_Arguments, Path], Iterator[Aim]]] = {
    "clean": _clean, "checkout": _checkout, "restore": _restore, "reset": _reset, "switch": _switch, "stash": _stash,
    "rm": _remove, "mv": _move, "checkout-index": _switch, "read-tree": _reset, "worktree": _worktree,
}  # fmt: skip


# Places


def _places(words: Sequence[Word], folder: Path, what: What = "any") -> Iterator[Aim]:
    for word in words:
        yield from (Aim(place, what) for place in _expanded(word, folder))


def _joined(folder: Path, said: str) -> Path:
    return Path(os.path.normpath(folder / with_home(said.replace("\0", ""))))


def _expanded(word: Word, folder: Path) -> Iterator[Path]:
    """List what a word leads to that exists."""
    if word.kind == "glob":
        pattern = os.fspath(folder / with_home(word.text.replace("\0", "")))
        yield from map(Path, islice(glob.iglob(pattern), _MOST))  # noqa: PTH207 - absolute ones too
    elif (
        word.text
        and len(word.text) < 4_096
        and os.path.lexists(place := _joined(folder, word.text.removeprefix(":/")))
    ):
        yield place
