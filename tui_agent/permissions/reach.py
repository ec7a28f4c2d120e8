"""What a shell command reaches beyond the files of its folder, as far as its own words say: for whoever is asked.

Nothing here allows or denies anything. Read are programs, their arguments, and what they are fed by pipes, by
substitutions, by variables and by files that the command itself downloads.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tui_agent.core.values import Reach
from tui_agent.permissions.budget import MARGIN_OF_THE_GRAMMAR, JudgementBudget
from tui_agent.permissions.commands import Reading, SimpleCommand, Word, read_command
from tui_agent.permissions.network_programs import DOWNLOADERS, SENDERS, hosts_of, reaches_network, sends
from tui_agent.permissions.programs import SINKS, hides_its_program
from tui_agent.permissions.taken_away import aims
from tui_agent.secret_names import named_like_a_secret
from tui_agent.shell_programs import SHELLS, base_name, interprets, shell_code, unwrapped
from tui_agent.shell_syntax import LONGEST, syntax_tree, text_of, too_many

if TYPE_CHECKING:
    from tree_sitter import Node

Kind = Literal["danger", "unread", "deletes", "replaces", "network", "outside"]
_UNREAD = Reach(kind="unread", text="not all of it can be read: it may reach anything")
_MOST = 4
"""Names of one kind that are said."""
_DEEPEST = 3
"""Scripts within scripts."""
_DEEPEST_NODE = 50
_AS_ANOTHER = frozenset({"sudo", "doas", "su", "pkexec", "run0", "gosu", "runuser"})
_FEED = frozenset({"xargs", "parallel", "busybox", "doas", "command", "stdbuf", "pkexec", "run0"})
"""Programs that run the one behind them and are no wrappers of `shell_programs`."""
_RUN_WORDS = frozenset({"eval", "source", "."})
_DECODERS = frozenset({
    "base64", "base32", "basenc", "xxd", "openssl", "uudecode", "rev", "tr", "gunzip", "gzip", "zcat", "bzcat", "xzcat",
    "gpg",
})  # fmt: skip
_DELETERS = re.compile(r"\b(?:rm|rmdir|shred|srm|unlink|unlinkat|rmtree|clean|remove|-delete|--delete\w*)\b")
_ON_DEVICES = re.compile(r"mkfs(?:\.\w+)?|wipefs|fdisk|sfdisk|sgdisk|parted|blkdiscard|mkswap")
_DEVICE = re.compile(r"/dev/(?!null|std|zero|tty|shm|fd|tcp|udp|u?random|full)\w+")
_SOCKET = re.compile(r"/dev/(?:tcp|udp)/([^/\s'\"]+)")
_ENDLESS = re.compile(r"(?<![\w:.])([\w:.]{1,40}) ?\(\) ?\{[^}]{0,200}?\1 ?\| ?\1 ?&")
_OUTSIDE = re.compile(r"(?:^|(?<=[=,@]))(?:/|~|\.\.(?:/|$)|\$HOME\b|\$\{HOME\})[^\s'\"]*")
_VARIABLE = re.compile(r"\$\{?(\w+)")
_SHELLS_BEHIND = re.compile(r"-[a-z]*[ec]|--(?:sh-)?exec|(?i:exec|system):.*")


def reach_of(command: str, root: Path) -> tuple[Reach, ...]:
    """Say what a command that begins in `root` reaches, the gravest first; () if its words name nothing. Blocks."""
    if len(command) > LONGEST or too_many(command):
        return (_UNREAD,)
    look = _Look(command, Path(os.path.realpath(root)), 0)
    dangers = [Reach(kind="danger", text=text) for text in dict.fromkeys(look.dangers())]
    return (
        *(dangers or ([_UNREAD] if look.is_unread else [])),
        *_named("deletes" if _DELETERS.search(command) else "replaces", look.losses()),
        *_named("network", look.network()),
        *_named("outside", look.outside()),
    )


def _named(kind: Kind, names: Iterator[str]) -> Iterator[Reach]:
    found = list(dict.fromkeys(names))
    if found:
        more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
        yield Reach(kind=kind, text=", ".join(found[:_MOST]) + more)


@dataclass
class _Look:
    """One script, and those within it."""

    text: str
    root: Path
    depth: int
    loaded: set[str] = field(default_factory=set)
    """Names of files and variables (`$NAME`) that hold what was downloaded."""

    @cached_property
    def reading(self) -> Reading:
        return read_command(self.text)

    @cached_property
    def inner(self) -> list[_Look]:
        """Scripts that shells in it are given as text."""
        if self.depth >= _DEEPEST:
            return []
        given = [_given(_behind(one.words)) for one in self.reading.commands]
        return [_Look(text, self.root, self.depth + 1, self.loaded) for text in given if text]

    @property
    def is_unread(self) -> bool:
        """True if a part of it could not be read, or does not name the program that it runs."""
        return self.reading.unread or any(hides_its_program(one) for one in self.reading.commands)

    def dangers(self) -> Iterator[str]:
        yield from self._fed()
        for one in self.reading.commands:
            yield from self._of_one(one)
        for redirection in self.reading.redirections:
            if redirection.writes and _DEVICE.fullmatch(redirection.path.text):
                yield f"writes to the device {redirection.path.text}"
        if _ENDLESS.search(self.text):
            yield "starts itself over and over"
        for path in self._aimed():
            if self.root.is_relative_to(path):
                yield "deletes or writes over all of this folder"
            elif not path.is_relative_to(self.root) and not _DEVICE.fullmatch(os.fspath(path)):
                yield f"deletes or writes over {shown_path(path)}, outside of this folder"
        for script in self.inner:
            yield from script.dangers()

    def _of_one(self, one: SimpleCommand) -> Iterator[str]:
        first = base_name(one.program)
        words = _behind(one.words)
        program = base_name(words[0].text) if words else ""
        if first in _AS_ANOTHER:
            yield f"runs as another user ({first})"
        device = next((found[0] for word in words if (found := _DEVICE.search(word.text))), "")
        if device and (
            _ON_DEVICES.fullmatch(program) or (program == "dd" and f"of={device}" in _texts(words))
        ):
            yield f"writes to the device {device}"
        if (program in SHELLS or program == "exec") and _SOCKET.search(self.text):
            yield "opens a shell to another machine"
        if program in SENDERS and any(_SHELLS_BEHIND.fullmatch(word.text) for word in words[1:]):
            yield "opens a shell to another machine"
        if reaches_network(_texts(words)):
            there = ", ".join(hosts_of(_texts(words))) or "another machine"
            secrets = [
                name for name in _VARIABLE.findall(" ".join(_unknown(words))) if named_like_a_secret(name)
            ]
            yield from (f"sends ${name} to {there}" for name in secrets)
            if sends(_texts(words)) or any("$(" in text or "`" in text for text in _unknown(words)):
                yield f"sends what it reads to {there}"

    def losses(self) -> Iterator[str]:
        found = [path for path in self._aimed() if os.path.lexists(path) and path.is_relative_to(self.root)]
        yield from (os.path.relpath(path, self.root) for path in found if path != self.root)
        if not found and any(base_name(one.program) in {"rm", "rmdir"} for one in self.reading.commands):
            unknown = any(_unknown(one.words) for one in self.reading.commands)
            yield from ["what its words do not say"] if unknown else []

    def _aimed(self) -> list[Path]:
        if self.depth:
            return []
        every = (Path(os.path.normpath(aim.path)) for aim in aims(self.text, self.root) if not aim.names)
        return [path for path in dict.fromkeys(every) if os.fspath(path) not in SINKS]

    def network(self) -> Iterator[str]:
        yield from _SOCKET.findall(self.text)
        for one in self.reading.commands:
            texts = _texts(_behind(one.words))
            if reaches_network(texts):
                yield from hosts_of(texts) or [base_name(texts[0])]
        for script in self.inner:
            yield from script.network()

    def outside(self) -> Iterator[str]:
        words = [word for one in self.reading.commands for word in one.words[1:]]
        for word in (*words, *(one.path for one in self.reading.redirections)):
            for found in _OUTSIDE.finditer(word.text if "://" not in word.text else ""):
                if self._leads_out(found[0]):
                    yield found[0]
        for script in self.inner:
            yield from script.outside()

    def _leads_out(self, path: str) -> bool:
        """True for a path outside; a pattern between slashes (`/TODO/`) is none."""
        if path in SINKS or _SOCKET.match(path) or (path.startswith("~") and path[1:2] not in {"", "/"}):
            return False
        if not path.startswith("/"):
            return path[:1] in {"~", "$"} or not self._inside(self.root / path)
        top = path.split("/")[1]
        there = bool(top) and os.path.lexists(f"/{top}")
        return path in {"/", "/*"} or (there and not self._inside(Path(path)))

    def _inside(self, path: Path) -> bool:
        return Path(os.path.normpath(path)).is_relative_to(self.root)

    # What is run without having been seen

    def _fed(self) -> Iterator[str]:
        source = self.text.encode("utf-8", "replace")
        budget = JudgementBudget()
        try:
            root = syntax_tree(source, lambda _: budget.over(MARGIN_OF_THE_GRAMMAR))
        except ValueError:
            return
        yield from self._of_node(root, source, 0)

    def _of_node(self, node: Node, source: bytes, depth: int) -> Iterator[str]:
        if depth > _DEEPEST_NODE:
            return
        text = text_of(source, node)
        if node.type == "pipeline":
            stages = [text_of(source, child) for child in node.children if child.is_named]
            for place, stage in enumerate(stages[1:], 1):
                yield from self._piped(" | ".join(stages[:place]), stage)
        elif node.type in {"command", "redirected_statement"}:
            head = text if node.type == "command" else text_of(source, node.children[0])
            yield from self._run_here(head, list(_substitutions(node, source)))
            self._note(text)
        elif node.type == "variable_assignment" and _downloads(text):
            self.loaded.add(f"${text.partition('=')[0]}")
        for child in node.children:
            yield from self._of_node(child, source, depth + 1)

    def _piped(self, before: str, stage: str) -> Iterator[str]:
        commands = read_command(stage).commands
        words = _behind(commands[0].words) if commands else ()
        program = base_name(words[0].text) if words else ""
        by_argument = bool(commands) and base_name(commands[0].program) in {"xargs", "parallel"}
        if program in SENDERS and not by_argument:
            yield f"sends what it reads to {', '.join(hosts_of(_texts(words))) or 'another machine'}"
        if not _runs(program) or not (by_argument or _runs_its_input(words)):
            return
        makers = [base_name(one.program) for one in read_command(before).commands]
        if _downloads(before) or any(name[1:] in before for name in self.loaded):
            yield "runs what it downloads"
        elif any(name in _DECODERS for name in makers):
            yield "runs text that it decodes"
        elif makers and not set(makers) <= {"echo", "printf", "cat"}:
            yield f"runs what {makers[-1]} writes"

    def _run_here(self, text: str, given: Sequence[str]) -> Iterator[str]:
        """Look at a program that runs what a substitution, a variable or a file gives it."""
        commands = read_command(text).commands
        words = _behind(max(commands, key=lambda one: len(one.source)).words) if commands else ()
        if not words:
            return
        program = base_name(words[0].text)
        runs = _runs(program) and (
            _first(words) in {"", "-"} or _is_made(_first(words)) or program in _RUN_WORDS
        )
        if (runs and any(_downloads(one) for one in given)) or (_is_made(words[0].text) and _downloads(text)):
            yield "runs what it downloads"
        elif runs and any(
            base_name(one.program) in _DECODERS for part in given for one in read_command(part).commands
        ):
            yield "runs text that it decodes"
        elif self.loaded:
            run = [words[0].text, *(_texts(words[1:]) if _runs(program) else ())]
            names = {Path(word.strip("\"'").replace("{", "").replace("}", "")).name for word in run}
            if names & self.loaded:
                yield "runs what it downloads"

    def _note(self, text: str) -> None:
        """Remember the files that a statement puts downloads into."""
        if not _downloads(text):
            return
        reading = read_command(text)
        self.loaded |= {Path(one.path.text).name for one in reading.redirections if one.writes}
        for one in reading.commands:
            texts = _texts(_behind(one.words))
            if texts and base_name(texts[0]) in DOWNLOADERS:
                behind = {"-o", "--output", "-O", "--output-document", "-d", "--out"}
                named = [b for a, b in pairwise(texts) if a in behind or re.fullmatch(r"-\w*[oO]", a)]
                joined = [text.partition("=")[2] for text in texts if text.startswith("--output")]
                addresses = [text for text in texts if "://" in text]
                self.loaded |= {Path(name).name for name in (*named, *joined, *addresses) if name}
        self.loaded.discard("")
        self.loaded.discard("-")


def _texts(words: Sequence[Word]) -> list[str]:
    return [word.text for word in words]


def _unknown(words: Sequence[Word]) -> list[str]:
    return [word.text for word in words if word.kind == "unknown"]


def _behind(words: Sequence[Word]) -> Sequence[Word]:
    """The words from the program on that does the work."""
    while words:
        left = len(unwrapped(_texts(words)))
        words = words[len(words) - left :]
        if not words or base_name(words[0].text) not in _FEED:
            break
        place = next(
            (
                at
                for at, word in enumerate(words[1:], 1)
                if _runs(base_name(word.text)) or word.text in DOWNLOADERS
            ),
            next((at for at, word in enumerate(words[1:], 1) if not word.text.startswith("-")), len(words)),
        )
        words = words[place:]
    return words


def _runs(program: str) -> bool:
    return program in SHELLS or program in _RUN_WORDS or interprets(program)


def _runs_its_input(words: Sequence[Word]) -> bool:
    """True if a shell or an interpreter takes its program from the standard input."""
    texts = _texts(words[1:])
    if any(re.fullmatch(r"-\w*s", text) for text in texts) and base_name(words[0].text) in SHELLS:
        return True
    if any(re.fullmatch(r"-\w*[cemp]|--eval|--print", text) for text in texts):
        return False
    return _first(words) in {"", "-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}


def _first(words: Sequence[Word]) -> str:
    """The first argument that is no option."""
    return next((word.text for word in words[1:] if not word.text.startswith("-") or word.text == "-"), "")


def _is_made(text: str) -> bool:
    return any(sign in text for sign in ("$(", "`", "<(")) or text.startswith(("$", '"$'))


def _given(words: Sequence[Word]) -> str:
    """The script that a shell or `eval` is given as text; "" if it is not known."""
    texts = _texts(words)
    if texts and base_name(texts[0]) == "eval":
        return " ".join(texts[1:])
    return shell_code([base_name(texts[0]), *texts[1:]]) or "" if texts else ""


def _downloads(text: str) -> bool:
    """True if a program in it writes out what comes from another machine."""
    commands = read_command(text).commands
    return _SOCKET.search(text) is not None or any(
        base_name(words[0].text) in DOWNLOADERS and reaches_network(_texts(words))
        for one in commands
        if (words := _behind(one.words))
    )


def _substitutions(node: Node, source: bytes, depth: int = 0) -> Iterator[str]:
    for child in node.children:
        if child.type in {"command_substitution", "process_substitution"}:
            yield text_of(source, child).strip("$<>()`")
        elif depth < _DEEPEST_NODE and (child.type != "command" or node.type == "redirected_statement"):
            yield from _substitutions(child, source, depth + 1)


def shown_path(path: Path) -> str:
    """A path as people write it."""
    home = Path.home()
    return f"~/{path.relative_to(home)}".removesuffix("/.") if path.is_relative_to(home) else os.fspath(path)
