"""The structure of a shell command: lists, pipelines, simple commands, words; nothing is expanded or run.

What recovery reads. It takes the common part of POSIX sh and bash in linear time and raises `UnreadableCommand` for the
rest, so that who asks can take the careful way. Approvals read by the grammar of `permissions.commands`, which knows
all of bash: it takes hostile text quadratic time, so a clock has to bound it, and a fold of events may ask none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

LONGEST = 20_000
"""Characters; longer commands are scripts, and nothing is concluded from them."""
_DEEPEST = 40
_HERE = re.compile(r"<<-?[^\S\n]*(['\"]?)(\w+)\1")
"""What announces a here-document."""


class UnreadableCommand(ValueError):
    """The command is too long, too deep, not closed, or holds syntax that is not read here."""


@dataclass(frozen=True)
class Simple:
    """A program with its arguments: words without their quotes, in which nothing was expanded."""

    words: tuple[str, ...]
    redirected: bool = False


@dataclass(frozen=True)
class Group:
    """`( … )` or `{ …; }`."""

    body: Script


@dataclass(frozen=True)
class Compound:
    """`if`, `for`, `while`, `case`, a function: passed over, nothing is known of what runs last in it."""


Command = Simple | Group | Compound


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
                        case Group(body):
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


@lru_cache(maxsize=16)
def parse(command: str) -> Script:
    """The structure of `command`. Raises `UnreadableCommand`."""
    if len(command) > LONGEST:
        raise UnreadableCommand("the command is too long")
    parser = _Parser(_tokens(command))
    script = parser.script(0)
    if parser.peek() is not None:
        raise UnreadableCommand(f"unexpected {parser.peek()!r}")
    return script


# Words

_OPERATOR = re.compile(r"&&|\|\||;;&|;;|;&|\|&|&>>|&>|<<<|<<-|<<|<>|<&|>&|>>|>\||[;|&()<>\n]")
_BLANK = re.compile(r"(?:[ \t]|\\\n)+|#[^\n]*")
_PROCESS = re.compile(r"[<>]\(")
_SEPARATORS = frozenset({";", "\n", "&"})
_REDIRECTIONS = frozenset({"<", ">", ">>", ">|", "<>", "<&", ">&", "&>", "&>>", "<<", "<<-", "<<<"})
_PLAIN = re.compile(r"[^\s;|&()<>'\"\\$`*?\[\]{}~#!]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")
_DOUBLE_QUOTED = re.compile(r"[^\"\\$`]+")


@dataclass(frozen=True)
class _Word:
    """One word: `text` without its quotes. `literal` is False where the shell would expand something in it."""

    text: str
    literal: bool = True
    quoted: bool = False


_Token = _Word | str
"""An operator is a `str`."""


def _tokens(source: str) -> list[_Token]:
    """Words and operators, comments and the bodies of here-documents left out."""
    tokens: list[_Token] = []
    heredocs: list[tuple[str, bool]] = []
    position, size = 0, len(source)
    while position < size:
        if blank := _BLANK.match(source, position):
            position = blank.end()
        elif source.startswith("((", position) and _command_position(tokens):
            end = source.find("))", position)
            if end == -1:
                raise UnreadableCommand("(( is not closed")
            tokens.append(_Word(source[position : end + 2], literal=False))
            position = end + 2
        elif (found := _OPERATOR.match(source, position)) and not _PROCESS.match(source, position):
            operator, position = found[0], found.end()
            if operator in _REDIRECTIONS and tokens and _is_descriptor(tokens[-1], source, found.start()):
                tokens.pop()
            tokens.append(operator)
            if operator == "\n":
                position = _after_heredocs(source, position, heredocs)
        else:
            word, position = _word(source, position)
            if tokens and tokens[-1] in ("<<", "<<-"):
                heredocs.append((word.text, tokens[-1] == "<<-"))
            tokens.append(word)
            if word.text == "[[" and not word.quoted and _command_position(tokens[:-1]):
                position = _after_test(source, position, tokens)
    return tokens


def _command_position(tokens: list[_Token]) -> bool:
    return (
        not tokens
        or (isinstance(tokens[-1], str) and tokens[-1] not in _REDIRECTIONS)
        or (isinstance(tokens[-1], _Word) and tokens[-1].text in _BEFORE_COMMANDS)
    )


def _is_descriptor(token: _Token, source: str, position: int) -> bool:
    """Whether the word right before a redirection is its number (`2>`)."""
    return isinstance(token, _Word) and token.text.isdigit() and source[position - 1] == token.text[-1]


def _after_heredocs(source: str, position: int, heredocs: list[tuple[str, bool]]) -> int:
    """Where the bodies of the here-documents end that were announced in the line before."""
    for delimiter, tabs in heredocs:
        while position < len(source):
            end = source.find("\n", position)
            end = len(source) if end == -1 else end
            line = source[position:end]
            position = end + 1
            if (line.lstrip("\t") if tabs else line) == delimiter:
                break
    heredocs.clear()
    return min(position, len(source))


def _after_test(source: str, position: int, tokens: list[_Token]) -> int:
    """The rest of `[[ … ]]`, in which operators are ordinary words."""
    while True:
        while position < len(source) and source[position] in " \t\n":
            position += 1
        if position >= len(source):
            raise UnreadableCommand("[[ is not closed")
        operator = _OPERATOR.match(source, position)
        if operator:
            tokens.append(_Word(operator[0], literal=False))
            position = operator.end()
            continue
        word, position = _word(source, position)
        tokens.append(word)
        if word.text == "]]" and not word.quoted:
            return position


def _word(source: str, position: int) -> tuple[_Word, int]:
    """The word that begins at `position`, and where it ends."""
    parts: list[str] = []
    literal, quoted, start = True, False, position
    while position < len(source):
        char = source[position]
        if found := _PLAIN.match(source, position):
            parts.append(found[0])
            position = found.end()
        elif char == "'":
            end = _closing(source, position + 1, "'")
            parts.append(source[position + 1 : end])
            position, quoted = end + 1, True
        elif char == '"':
            text, plain, position = _double_quoted(source, position + 1)
            parts.append(text)
            literal, quoted = literal and plain, True
        elif char == "\\":
            parts.append("" if source.startswith("\n", position + 1) else source[position + 1 : position + 2])
            position, quoted = position + 2, True
        elif char == "$" and source.startswith("'", position + 1):
            end = _after_ansi(source, position + 2)
            parts.append(source[position:end])
            position, literal, quoted = end, False, True
        elif char in "$`" or (char in "<>" and position == start):
            end = _after_expansion(source, position, 0)
            parts.append(source[position:end])
            position, literal = end, False
        elif char in " \t\n;|&()<>":
            break
        else:
            # A glob, a brace, a tilde, a strange blank; `#` and `!` inside a word are themselves.
            literal = literal and (char in "#!]}" or (char == "~" and position > start))
            parts.append(char)
            position += 1
    return _Word("".join(parts), literal, quoted), position


def _closing(source: str, position: int, quote: str) -> int:
    end = source.find(quote, position)
    if end == -1:
        raise UnreadableCommand(f"{quote} is not closed")
    return end


def _double_quoted(source: str, position: int) -> tuple[str, bool, int]:
    """The inside of a double-quoted part, whether it is literal, and the position behind it."""
    parts: list[str] = []
    literal = True
    while position < len(source):
        char = source[position]
        if found := _DOUBLE_QUOTED.match(source, position):
            parts.append(found[0])
            position = found.end()
        elif char == '"':
            return "".join(parts), literal, position + 1
        elif char == "\\":
            escaped = source[position + 1 : position + 2]
            parts.append("" if escaped == "\n" else escaped if escaped in '"\\$`' else f"\\{escaped}")
            position += 2
        else:
            end = _after_expansion(source, position, 0)
            parts.append(source[position:end])
            position, literal = end, False
    raise UnreadableCommand('" is not closed')


def _after_ansi(source: str, position: int) -> int:
    while position < len(source):
        if source[position] == "\\":
            position += 2
        elif source[position] == "'":
            return position + 1
        else:
            position += 1
    raise UnreadableCommand("$' is not closed")


def _after_expansion(source: str, position: int, depth: int) -> int:
    """Where `$name`, `${…}`, `$(…)`, `` `…` `` or `<(…)` ends."""
    if depth > _DEEPEST:
        raise UnreadableCommand("nested too deeply")
    if source[position] == "`":
        position += 1
        while position < len(source) and source[position] != "`":
            position += 2 if source[position] == "\\" else 1
        if position >= len(source):
            raise UnreadableCommand("` is not closed")
        return position + 1
    opening = source[position + 1 : position + 2]
    if opening not in ("(", "{"):
        return position + 1
    closing = {"(": ")", "{": "}"}[opening]
    position, level = position + 2, 1
    while position < len(source):
        char = source[position]
        if char == "\\":
            position += 2
            continue
        if char == "'":
            position = _closing(source, position + 1, "'") + 1
            continue
        if char == '"':
            position = _after_quoted(source, position + 1, depth)
            continue
        if char == "`" or (char == "$" and source[position + 1 : position + 2] in ("(", "{")):
            position = _after_expansion(source, position, depth + 1)
            continue
        level += (char == opening) - (char == closing)
        position += 1
        if level == 0:
            return position
    raise UnreadableCommand(f"${opening} is not closed")


def _after_quoted(source: str, position: int, depth: int) -> int:
    while position < len(source):
        char = source[position]
        if char == '"':
            return position + 1
        if char == "\\":
            position += 2
        elif char == "`" or (char == "$" and source[position + 1 : position + 2] in ("(", "{")):
            position = _after_expansion(source, position, depth + 1)
        else:
            position += 1
    raise UnreadableCommand('" is not closed')


# Commands

_BEFORE_COMMANDS = frozenset({"then", "do", "else", "elif", "if", "while", "until", "!", "{", "time"})
_COMPOUNDS = {
    "if": "fi", "for": "done", "while": "done", "until": "done", "select": "done", "case": "esac",
}  # fmt: skip
_ENDS = frozenset({"then", "do", "else", "elif", "fi", "done", "esac", "}"})


class _Parser:
    """Recursive descent over tokens."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def peek(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _keyword(self) -> str:
        """The next token where it may be a reserved word, "" otherwise."""
        token = self.peek()
        if isinstance(token, _Word) and not token.quoted and (token.literal or token.text == "{"):
            return token.text
        return ""

    def _skip_newlines(self) -> None:
        while self.peek() == "\n":
            self._at += 1

    def script(self, depth: int) -> Script:
        if depth > _DEEPEST:
            raise UnreadableCommand("nested too deeply")
        lists: list[AndOr] = []
        while True:
            while self.peek() in _SEPARATORS:
                self._at += 1
            if self.peek() is None or self.peek() == ")" or self._keyword() in _ENDS:
                return Script(tuple(lists))
            lists.append(self._and_or(depth))

    def _and_or(self, depth: int) -> AndOr:
        pipelines, operators = [self._pipeline(depth)], []
        while (operator := self.peek()) in ("&&", "||"):
            operators.append(str(operator))
            self._at += 1
            self._skip_newlines()
            pipelines.append(self._pipeline(depth))
        return AndOr(tuple(pipelines), tuple(operators), self.peek() == "&")

    def _pipeline(self, depth: int) -> Pipeline:
        negated = False
        while self._keyword() in ("!", "time"):
            negated ^= self._keyword() == "!"
            self._at += 1
        commands = [self._command(depth)]
        while self.peek() in ("|", "|&"):
            self._at += 1
            self._skip_newlines()
            commands.append(self._command(depth))
        return Pipeline(tuple(commands), negated)

    def _command(self, depth: int) -> Command:
        keyword = self._keyword()
        if keyword == "{" or self.peek() == "(":
            self._at += 1
            body = self.script(depth + 1)
            if self.peek() != ")" and self._keyword() != "}":
                raise UnreadableCommand("a group is not closed")
            self._at += 1
            self._redirections()
            return Group(body)
        if keyword in _COMPOUNDS or keyword == "function":
            self._pass_compound(keyword)
            return Compound()
        return self._simple()

    def _pass_compound(self, keyword: str) -> None:
        """Go behind the word that ends the compound command which `keyword` begins."""
        if keyword == "function":
            raise UnreadableCommand("it defines a function")
        expected = [_COMPOUNDS[keyword]]
        self._at += 1
        beginning = False
        while expected:
            token, word = self.peek(), self._keyword()
            if token is None:
                raise UnreadableCommand(f"{expected[-1]} is missing")
            self._at += 1
            if beginning and word == expected[-1]:
                expected.pop()
            elif beginning and word in _COMPOUNDS:
                expected.append(_COMPOUNDS[word])
            beginning = isinstance(token, str) or word in _BEFORE_COMMANDS or word in _ENDS
        self._redirections()

    def _redirections(self) -> bool:
        found = False
        while self.peek() in _REDIRECTIONS:
            self._at += 1
            if not isinstance(self.peek(), _Word):
                raise UnreadableCommand("a redirection has no target")
            self._at += 1
            found = True
        return found

    def _simple(self) -> Simple:
        words: list[str] = []
        assigns = redirected = False
        while True:
            redirected = self._redirections() or redirected
            token = self.peek()
            if not isinstance(token, _Word):
                break
            self._at += 1
            if not words and not token.text.startswith("((") and _ASSIGNMENT.match(token.text):
                assigns = True
            else:
                words.append(token.text)
        if self.peek() == "(":
            raise UnreadableCommand("it defines a function or an array")
        if not (words or assigns or redirected):
            raise UnreadableCommand(f"a command is missing before {self.peek()!r}")
        return Simple(tuple(words), redirected)
