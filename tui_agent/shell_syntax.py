"""The grammar of bash, and the structure of a shell command: lists, pipelines, programs with their words.

The one place that parses commands; nothing is expanded or run. What recovery needs of the tree is here; what approvals
need of it, each doubt included, is in `permissions.commands`. What is not read raises `UnreadableCommand`, so that who
asks can take the careful way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language, Node

LONGEST = 20_000
"""Characters; longer commands are scripts, and nothing is concluded from them."""
MOST = {"|": 400, "`": 300}
"""Of these characters, also in quotes: the repair of what is not closed behind them takes quadratic time, in which
the parser cannot be halted.
"""
_MOST_OPEN = 100
"""Brackets that are opened and not closed: each makes that repair longer."""
_LONGEST_READ = 5_000
"""Characters; bodies of here-documents are left out of longer texts: hostile text takes the grammar quadratic
time.
"""
_MOST_STEPS = 120
"""Looks of the parser at whether it goes on: a count, so that the answer is the same on every machine."""
_DEEPEST = 40
_HERE = re.compile(r"<<-?[^\S\n]*(['\"]?)(\w+)\1")
"""The operator that announces a here-document."""
_AS_ASCII = bytes.maketrans(bytes(range(128, 256)), b"." * 128)
"""Letters beyond ASCII, each byte as a sign that stands in words and in no name.

The grammar's scanner looks up whether a letter is a digit in a table of 256 (`isdigit`, tree-sitter-bash issue 337), so
that letters beyond it end the process at times; which ones are letters depends on the locale besides.
"""


class UnreadableCommand(ValueError):
    """The command is too long, too deep, not closed, or holds syntax that is not read here."""


@cache
def language() -> Language:
    """The grammar, which takes its time to load."""
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Language(tree_sitter_bash.language())


def syntax_tree(source: bytes, halted: Callable[[bool], bool]) -> Node:
    """The root of the grammar's tree. The repair of what is no bash may take seconds, so it asks whether to go on.

    `halted` is told whether an error was met. Raises `ValueError` if it said so. The tree's own texts are not
    those of `source`: take the text between a node's beginning and end.
    """
    import tree_sitter

    plain = source.translate(_AS_ASCII)
    # One for each reading: several threads read at the same time.
    parser = tree_sitter.Parser(language())
    tree = parser.parse(
        lambda start, _: plain[start : start + 4_096], progress_callback=lambda _, error: halted(error)
    )
    return tree.root_node


def too_many(text: str) -> str:
    """Name what a text holds too often for the grammar, in words; "" if it may be read."""
    for char, most in MOST.items():
        if text.count(char) > most:
            return f"{char} more than {most:,} times"
    return f"more than {_MOST_OPEN} open brackets" if text.count("(") - text.count(")") > _MOST_OPEN else ""


def text_of(source: bytes, node: Node) -> str:
    """The text of a node, as it is written."""
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r'\\([$`"\\\n])')


def _without_backslash(found: re.Match[str]) -> str:
    return found[1].replace("\n", "")


def value_of(source: bytes, node: Node) -> str:
    """A word without its quotes and backslashes; expansions in it stay as they are written."""
    text = text_of(source, node)
    match node.type:
        case "command_name" if node.child_count == 1:
            return value_of(source, node.children[0])
        case "word" | "number":
            return _ESCAPED.sub(_without_backslash, text) if "\\" in text else text
        case "raw_string":
            return text[1:-1]
        case "string":
            return "".join(_quoted(source, node))
        case "concatenation" | "variable_assignment":
            return "".join(value_of(source, child) for child in node.children)
        case _:
            return text


def _quoted(source: bytes, node: Node) -> Iterator[str]:
    at = node.start_byte + 1
    expansions = [child for child in node.named_children if child.type != "string_content"]
    ends = [(each.start_byte, each.end_byte) for each in expansions]
    closed = not node.children[-1].is_missing
    for start, end in (*ends, (node.end_byte - closed,) * 2):
        yield _ESCAPED_IN_QUOTES.sub(_without_backslash, source[at:start].decode("utf-8", "replace"))
        yield source[start:end].decode("utf-8", "replace")
        at = end


# What recovery reads


@dataclass(frozen=True)
class Simple:
    """A program with its arguments: words without their quotes, in which nothing was expanded."""

    words: tuple[str, ...]
    redirected: bool = False


@dataclass(frozen=True)
class CommandGroup:
    """`( … )` or `{ …; }`."""

    body: Script


@dataclass(frozen=True)
class Compound:
    """`if`, `for`, `while`, `case`: passed over, nothing is known of what runs last in it."""


Command = Simple | CommandGroup | Compound


@dataclass(frozen=True)
class Pipeline:
    """Commands joined by `|`."""

    commands: tuple[Command, ...]
    negated: bool = False


@dataclass(frozen=True)
class AndOr:
    """Pipelines joined by `&&` and `||`; `operators[i]` stands before `pipelines[i + 1]`."""

    pipelines: tuple[Pipeline, ...]
    operators: tuple[str, ...] = ()
    background: bool = False


@dataclass(frozen=True)
class Script:
    """Lists joined by `;`, `&` or line ends."""

    lists: tuple[AndOr, ...]

    def simple_commands(self) -> Iterator[Simple]:
        """Every program with its arguments, in order, those in groups included."""
        for one in self.lists:
            for pipeline in one.pipelines:
                for command in pipeline.commands:
                    match command:
                        case Simple():
                            yield command
                        case CommandGroup(body):
                            yield from body.simple_commands()


def without_bodies(command: str) -> str:
    """The command line with empty here-documents, which hold any text."""
    if "<<" not in command:
        return command
    lines = command.split("\n")
    last = {line.lstrip("\t"): place for place, line in enumerate(lines)}
    kept: list[str] = []
    place = 0
    while place < len(lines):
        kept.append(lines[place])
        announced = _HERE.search(lines[place])
        place += 1
        if announced is not None and last.get(announced[2], 0) >= place:
            while lines[place].lstrip("\t") != announced[2]:
                place += 1
            kept.append(lines[place])
            place += 1
    return "\n".join(kept)


def parse(command: str) -> Script:
    """The structure of `command`. Raises `UnreadableCommand`."""
    found = _parsed(command)
    if isinstance(found, str):
        raise UnreadableCommand(found)
    return found


@lru_cache(maxsize=256)
def _parsed(command: str) -> Script | str:
    """The structure, or why it is not read."""
    text = command if len(command) <= _LONGEST_READ else without_bodies(command)
    if len(command) > LONGEST or len(text) > _LONGEST_READ:
        return "the command is too long"
    if "\0" in text or too_many(text):
        return "it holds what the grammar does not take"
    # The shell takes a here-document without its end as one that goes on to the end.
    for ended in (text, *(f"{text}\n{end}" for _, end in _HERE.findall(text)[-1:])):
        source = ended.encode("utf-8", "replace")
        if (root := _root(source)) is not None:
            try:
                return _Structure(source).script(root, 0)
            except UnreadableCommand as error:
                return str(error)
    return "its syntax could not be read"


def _root(source: bytes) -> Node | None:
    steps = iter(range(_MOST_STEPS))
    try:
        root = syntax_tree(source, lambda error: error or next(steps, None) is None)
    except ValueError:
        return None
    return None if root.has_error else root


_COMPOUNDS = frozenset({
    "if_statement", "for_statement", "c_style_for_statement", "while_statement", "case_statement",
})  # fmt: skip
_RESERVED = frozenset(
    {"if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac"}
)
_REDIRECTIONS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})


@dataclass(frozen=True)
class _Structure:
    """Reads the tree of one command. A here-document may hold more command, behind its beginning: it is put back."""

    source: bytes

    def script(self, node: Node, depth: int) -> Script:
        lists: list[AndOr] = []
        for child in node.children:
            if child.is_named and child.type != "comment":
                lists.append(self.and_or(child, depth + 1))
            elif child.type == "&" and lists:
                lists[-1] = replace(lists[-1], background=True)
        return Script(tuple(lists))

    def and_or(self, node: Node, depth: int) -> AndOr:
        if depth > _DEEPEST:
            raise UnreadableCommand("nested too deeply")
        match node.type:
            case "list":
                behind: list[tuple[str, AndOr]] = []
                while node.type == "list":  # each holds the one before it
                    left, operator, right = (child for child in node.children if child.type != "comment")
                    behind.append((operator.type, self.and_or(right, depth + 1)))
                    node = left
                whole = self.and_or(node, depth + 1)
                for joint, part in reversed(behind):
                    whole = _joined(whole, joint, part)
                return whole
            case "pipeline":
                first_node, *others = (child for child in node.named_children if child.type != "comment")
                whole = self.and_or(first_node, depth + 1)
                for other in others:
                    whole = _joined(whole, "|", self.and_or(other, depth + 1))
                return whole
            case "negated_command":
                found = self.and_or(node.children[-1], depth + 1)
                first, *rest = found.pipelines
                return replace(found, pipelines=(replace(first, negated=not first.negated), *rest))
            case "redirected_statement":
                return self.redirected(node, depth)
            case _:
                return AndOr((Pipeline((self.command(node, depth),)),))

    def redirected(self, node: Node, depth: int) -> AndOr:
        body = node.child_by_field_name("body")
        found = self.and_or(body, depth + 1) if body is not None else AndOr((Pipeline((Simple(()),)),))
        *before, pipeline = found.pipelines
        *others, last = pipeline.commands
        if isinstance(last, Simple):
            words = [
                word for child in node.children if child.type in _REDIRECTIONS for word in self.behind(child)
            ]
            if body is not None:
                # The grammar passes over the `-` of `python3 - <<EOF`.
                passed = self.source[body.end_byte : node.children[1].start_byte].replace(b"\\\n", b"")
                words += passed.decode("utf-8", "replace").split()
            last = Simple((*last.words, *words), redirected=True)
        whole = replace(found, pipelines=(*before, replace(pipeline, commands=(*others, last))))
        for child in node.children:
            for inner in child.children if child.type == "heredoc_redirect" else ():
                if inner.type == "pipeline":
                    for piped in inner.named_children:
                        whole = _joined(whole, "|", self.and_or(piped, depth + 1))
            operator, right = child.child_by_field_name("operator"), child.child_by_field_name("right")
            if operator is not None and right is not None:
                whole = _joined(whole, operator.type, self.and_or(right, depth + 1))
        return whole

    def command(self, node: Node, depth: int) -> Command:
        kind = node.type
        if kind == "subshell" or (kind == "compound_statement" and node.children[0].type == "{"):
            return CommandGroup(self.script(node, depth))
        if kind in _COMPOUNDS:
            return Compound()
        if kind == "compound_statement":
            return Simple((text_of(self.source, node),))
        if kind in {"variable_assignment", "variable_assignments"}:
            return Simple(())
        if kind in {"command", "declaration_command", "unset_command"}:
            return self.simple(node)
        if kind == "test_command":
            return Simple(tuple(self.leaves(node)))
        raise UnreadableCommand(f"it holds {kind.replace('_', ' ')}")

    def simple(self, node: Node) -> Simple:
        words: list[str] = []
        redirected = False
        for child in node.children:
            if child.type in _REDIRECTIONS:
                redirected = True
                words += self.behind(child)
            elif child.type != "variable_assignment" or node.type != "command":
                words.append(self.word(child))
        if words[:1] == ["time"]:
            del words[0]
        if words and words[0] in _RESERVED:  # behind an assignment: the shell has no use for it there either
            raise UnreadableCommand(f"unexpected {words[0]!r}")
        return Simple(tuple(words), redirected)

    def behind(self, redirection: Node) -> Iterator[str]:
        """Words of the command that stand behind a redirection, which the grammar takes for its own."""
        if redirection.type == "heredoc_redirect":
            words = redirection.children_by_field_name("argument")
            inner = [child for child in redirection.children if child.type in _REDIRECTIONS]
            yield from (word for each in inner for word in self.behind(each))
        else:
            words = redirection.children_by_field_name("destination")[1:]
        yield from map(self.word, words)

    def leaves(self, node: Node) -> Iterator[str]:
        """The words of a condition, its operators included."""
        stack = node.children[::-1]
        while stack:
            child = stack.pop()
            if child.type.endswith("_expression") and child.children:
                stack += child.children[::-1]
            else:
                yield self.word(child)

    def word(self, node: Node) -> str:
        inner = node.child_by_field_name("value") if node.type == "variable_assignment" else node
        if inner is not None and inner.type in {"array", "subshell"}:
            raise UnreadableCommand("it defines an array or a function")
        return value_of(self.source, node)


def _joined(left: AndOr, operator: str, right: AndOr) -> AndOr:
    """Two lists with an operator between them; a pipe joins the last pipeline of one with the first of the other."""
    if operator in {"&&", "||"}:
        return AndOr((*left.pipelines, *right.pipelines), (*left.operators, operator, *right.operators))
    last, first = left.pipelines[-1], right.pipelines[0]
    middle = replace(last, commands=(*last.commands, *first.commands))
    pipelines = (*left.pipelines[:-1], middle, *right.pipelines[1:])
    return AndOr(pipelines, (*left.operators, *right.operators))
