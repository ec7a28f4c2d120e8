"""Reading of a shell command: every simple command, redirection and assignment that it would run.

The command is parsed by tree-sitter's grammar of bash and nothing is expanded or run. Only constructs that are
known to be harmless are passed over; whatever else stands there is `trouble`, so that whoever judges asks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from tui_agent.permissions.budget import MARGIN_OF_THE_GRAMMAR, JudgementBudget, TooMuchToJudge, too_long
from tui_agent.shell_syntax import LONGEST, language, syntax_tree, text_of, too_many, value_of

if TYPE_CHECKING:
    from tree_sitter import Node

_DEEPEST = 50

WordKind = Literal["literal", "glob", "unknown"]


@dataclass(frozen=True)
class Word:
    """One word. `text` is its value if it is literal, else its source."""

    text: str
    kind: WordKind = "literal"


@dataclass(frozen=True)
class SimpleCommand:
    """A program with its arguments. `assignments` are the variables set for it alone (`NAME=value`)."""

    words: tuple[Word, ...]
    assignments: tuple[str, ...] = ()
    source: str = ""

    @property
    def program(self) -> str:
        """The first word, "" if it is not known."""
        return self.words[0].text if self.words and self.words[0].kind == "literal" else ""


@dataclass(frozen=True)
class Redirection:
    """A file that the shell itself opens."""

    path: Word
    writes: bool
    appends: bool = False
    """True if what stood in it stays."""


@dataclass(frozen=True)
class Reading:
    """Everything found in a command. `trouble` names the parts that could not be understood; () if there are
    none.
    """

    commands: tuple[SimpleCommand, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    assignments: tuple[str, ...] = ()
    """Variables set for the rest of the command: `NAME=value`, as they stand there."""
    trouble: tuple[str, ...] = ()
    unread: bool = False
    """True if it may run programs that are not among `commands`: a part of it could not be read."""
    once: bool = True
    """True if each of its commands runs once and is waited for: no function, no endless loop, nothing behind
    `&`.
    """


def read_command(command: str, budget: JudgementBudget | None = None) -> Reading:
    """Read `command` as bash would. Raises `TooMuchToJudge` if a budget was given."""
    if budget is not None:
        return _read(command, budget)
    language()
    try:
        return _read(command, JudgementBudget())
    except TooMuchToJudge as error:
        return Reading(trouble=(f"it could not be read: {error}",), unread=True)


def _read(command: str, budget: JudgementBudget) -> Reading:
    if len(command) > LONGEST:
        return Reading(trouble=(f"it is longer than {LONGEST:,} characters",), unread=True)
    if held := too_many(command):
        return Reading(trouble=(f"it holds {held}",), unread=True)
    strange = next((char for char in _UNUSUAL.findall(command) if _strange(char)), None)
    if strange is not None:
        return Reading(trouble=(f"it holds the character U+{ord(strange):04X}",), unread=True)
    try:
        source = command.encode()
    except UnicodeEncodeError:
        return Reading(trouble=("it holds half of a surrogate pair",), unread=True)
    reader = _SyntaxVisitor(source, budget)
    root = _parse(source, budget)
    if root.has_error:
        reader.lose("its syntax could not be read")
    reader.gaps(root)
    reader.visit(root, 0)
    return Reading(
        tuple(reader.commands),
        tuple(reader.redirections),
        tuple(reader.assignments),
        tuple(dict.fromkeys(reader.trouble)),
        reader.unread,
        reader.once,
    )


def _parse(source: bytes, budget: JudgementBudget) -> Node:
    budget.look()
    try:
        return syntax_tree(source, lambda _: budget.over(MARGIN_OF_THE_GRAMMAR))
    except ValueError:
        raise too_long() from None


_UNUSUAL = re.compile(r"[^ -~\n\t]")


def _strange(char: str) -> bool:
    """Control characters, and blanks that the shell and the grammar may not agree on."""
    return char not in " \t\n" and (char.isspace() or not (char.isprintable() or ord(char) > 0xA0))


_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_META = re.compile(r"""[\s;&|<>()$`"']""")
_EXPANDS_IN_QUOTES = re.compile(r"[$`\"]")
_PLAIN_EXPANSION = re.compile(r"\$\{#?[A-Za-z_]\w*(?:(?::?-|##?|%%?)[^$`\\'\"{}]*)?\}|\$\{[0-9@#?*]\}")
_ASSIGNS = re.compile(r"[A-Za-z_]\w*(?:\[.*\])?\+?=", re.DOTALL)
_DELIMITER = re.compile(r"""(['"]?)(\w+)\1""")
_BRACES = re.compile(r"(?<!\\)[{}]")
_COMPARES_NUMBERS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})

_PASSED = frozenset({
    "program", "list", "pipeline", "subshell", "compound_statement", "do_group", "if_statement", "elif_clause",
    "else_clause", "while_statement", "negated_command", "command_substitution", "process_substitution",
    "case_statement", "case_item", "function_definition", "for_statement", "redirected_statement",
    "string", "concatenation", "array", "unary_expression", "binary_expression", "parenthesized_expression",
    "negated_expression", "variable_assignments",
})  # fmt: skip
"""Nodes that only hold other nodes."""
_LEAVES = frozenset({
    "word", "number", "raw_string", "string_content", "comment", "variable_name", "special_variable_name",
    "simple_expansion", "test_operator", "file_descriptor", "heredoc_content", "heredoc_start", "heredoc_end",
    "ansi_c_string", "regex", "extglob_pattern",
})  # fmt: skip
"""Nodes that run nothing by themselves."""
_REPEATS = frozenset({"function_definition", "while_statement", "c_style_for_statement", "&"})
_APPENDING = frozenset({">>", "&>>", "<>"})
_WRITING = frozenset({">", ">|", "&>", ">&"}) | _APPENDING


@dataclass
class _SyntaxVisitor:
    source: bytes
    budget: JudgementBudget
    commands: list[SimpleCommand] = field(default_factory=list)
    redirections: list[Redirection] = field(default_factory=list)
    assignments: list[str] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    unread: bool = False
    once: bool = True
    _heredoc_rows: set[int] = field(default_factory=set)

    def doubt(self, why: str) -> None:
        self.trouble.append(why)

    def lose(self, why: str) -> None:
        """Doubt a part in which there may be programs that are not seen."""
        self.doubt(why)
        self.unread = True

    def gaps(self, root: Node) -> None:
        """Between two tokens there may be nothing but blanks: what the grammar skipped, the shell may run."""
        position = 0
        stack = [root]
        while stack:
            self.budget.step()
            node = stack.pop()
            if node.children and node.type not in {"string", "heredoc_body", "expansion"}:
                stack.extend(reversed(node.children))
                continue
            if node.is_missing:
                self.lose("its syntax could not be read")
            self._blank(position, node.start_byte)
            position = max(position, node.end_byte)
        self._blank(position, len(self.source))

    def _blank(self, start: int, end: int) -> None:
        gap = self.source[start:end]
        bare = gap.replace(b"\\\n", b"")
        # A continued line without a blank on either side joins two tokens to one word: `r\<newline>m`.
        if bare.strip(b" \t\n") or (gap and not bare):
            self.lose("its syntax could not be read")

    def visit(self, node: Node, depth: int) -> None:
        self.budget.step(2)
        if depth > _DEEPEST:
            self.lose("it is nested too deeply")
            return
        kind = node.type
        self.once = self.once and kind not in _REPEATS
        if not node.is_named:
            if kind in {"((", "$(("}:
                self.doubt("it calculates, and a variable in a calculation may run a command")
            return
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, node, depth)
        elif kind in _PASSED:
            self._children(node, depth)
        elif kind in _LEAVES:
            self._leaf(node)
        else:
            self.doubt(f"it holds {kind.replace('_', ' ')}, which is not judged")
            self._children(node, depth)

    def _children(self, node: Node, depth: int) -> None:
        for child in node.children:
            self.visit(child, depth + 1)

    def _leaf(self, node: Node) -> None:
        """Check that the shell sees no more in a token than the grammar does."""
        text = self._text(node)
        plain = _ESCAPED.sub("", text)
        match node.type:
            case "word" | "number" | "variable_name":
                unclear = _META.search(plain) is not None
            case "string_content":
                unclear = _EXPANDS_IN_QUOTES.search(plain) is not None and "$" not in plain[-1:]
            case "raw_string":
                unclear = text.count("'") != 2
            case "comment":
                before = self.source[node.start_byte - 1 : node.start_byte]
                unclear = before not in {b"", b" ", b"\t", b"\n", b";", b"&", b"|", b"(", b")"}
            case _:
                unclear = False
        if unclear:
            self.lose("its syntax could not be read")

    def _command(self, node: Node, depth: int) -> None:
        words: list[Word] = []
        assignments: list[str] = []
        for child in node.children:
            match child.type:
                case "variable_assignment":
                    assignments.append(self._text(child))
                    self._value(child, depth)
                case "file_redirect" | "herestring_redirect" | "heredoc_redirect":
                    self.visit(child, depth + 1)
                case _:
                    self.visit(child, depth + 1)
                    words.append(self._word(child))
        if words and words[0].kind != "literal":
            self.doubt(f"it is not known which program {words[0].text!r} is")
        elif (
            words
            and words[0].text == self._text(node.children[len(assignments)])
            and _ASSIGNS.match(words[0].text)
        ):
            self.lose("its syntax could not be read")
        self._add(words, assignments, node)

    def _add(self, words: list[Word], assignments: list[str], node: Node) -> None:
        self.budget.read(len(words) + len(assignments))
        self.commands.append(SimpleCommand(tuple(words), tuple(assignments), self._text(node)))

    def _command_name(self, node: Node, depth: int) -> None:
        self._children(node, depth)

    def _declaration(self, node: Node, depth: int) -> None:
        """`export A=b`, `declare …`, `unset …`: a command whose arguments set variables."""
        words: list[Word] = []
        assigned: list[str] = []
        for child in node.children:
            if child.type == "variable_assignment":
                assigned.append(self._text(child))
                self._value(child, depth)
            else:
                if child.is_named:
                    self.visit(child, depth + 1)
                words.append(self._word(child))
        self._add([*words, *map(Word, assigned)], [], node)

    def _assignment(self, node: Node, depth: int) -> None:
        self.assignments.append(self._text(node))
        self._value(node, depth)

    def _value(self, node: Node, depth: int) -> None:
        name = node.child_by_field_name("name")
        if name is None or name.type != "variable_name":
            self.doubt("it sets an element of an array")
        value = node.child_by_field_name("value")
        if value is not None:
            self.visit(value, depth + 1)

    def _redirect(self, node: Node, depth: int) -> None:
        operator = next((child.type for child in node.children if not child.is_named), "")
        destination = node.child_by_field_name("destination")
        for child in node.children:
            if child.is_named and child.type != "file_descriptor":
                self.visit(child, depth + 1)
        if destination is None:
            if operator not in {">&-", "<&-"}:
                self.lose("its syntax could not be read")
            return
        target = self._word(destination)
        if operator in {">&", "<&"} and re.fullmatch(r"\d*-?", target.text):
            return
        if operator not in _WRITING and operator not in {"<", "<&"}:
            self.doubt(f"it redirects with {operator}")
        self.redirections.append(Redirection(target, operator in _WRITING, operator in _APPENDING))

    def _heredoc(self, node: Node, depth: int) -> None:
        """Its text is data; only an unquoted one is expanded. What stands behind `<<X` in its line is more command."""
        parts = {child.type: child for child in node.children}
        start, end = parts.get("heredoc_start"), parts.get("heredoc_end")
        delimiter = _DELIMITER.fullmatch(self._text(start)) if start is not None else None
        body = self._text(parts["heredoc_body"]) if "heredoc_body" in parts else ""
        row = node.start_point[0]
        ends = (
            delimiter is not None
            and end is not None
            and self._text(end) == delimiter[2]
            and delimiter[2] not in {line.strip("\t") for line in body.split("\n")}
        )
        if not ends or delimiter is None or row in self._heredoc_rows:
            self.lose("its here-document could not be read")
        elif not delimiter[1] and re.search(r"\$[({\[]|`", re.sub(r"\\.|\$\{\w+\}", "", body)):
            self.doubt("its here-document is expanded by the shell")
        self._heredoc_rows.add(row)
        for child in node.children:
            if child.is_named and child.type not in {"heredoc_start", "heredoc_body", "heredoc_end"}:
                if child.type in {"word", "string", "raw_string", "concatenation"}:
                    self.lose("its here-document could not be read")
                self.visit(child, depth + 1)

    def _expansion(self, node: Node, depth: int) -> None:
        if not _PLAIN_EXPANSION.fullmatch(self._text(node)):
            self.doubt(f"it expands {self._text(node)[:60]}")
        for child in node.children:
            if child.type in {"command_substitution", "process_substitution", "string", "concatenation"}:
                self.visit(child, depth + 1)

    def _test(self, node: Node, depth: int) -> None:
        self._children(node, depth)
        texts = self._text(node).split()
        if "-v" in texts or (texts and texts[0] == "[[" and _COMPARES_NUMBERS.intersection(texts)):
            self.doubt("it tests a variable in a way that may run a command")

    def _arithmetic(self, node: Node, depth: int) -> None:
        if not re.fullmatch(r"\$\(\([\d\s+*/%<>=()-]*\)\)", self._text(node)):
            self.doubt("it calculates, and a variable in a calculation may run a command")
            self._children(node, depth)

    def _loop(self, node: Node, depth: int) -> None:
        name = node.child_by_field_name("variable")
        if name is not None:
            self.assignments.append(f"{self._text(name)}=")
        self._children(node, depth)

    def _text(self, node: Node) -> str:
        return text_of(self.source, node)

    def _word(self, node: Node) -> Word:
        """A word: its value, if it has one before the shell runs."""
        kind = self._kind(node)
        return Word(self._text(node) if kind == "unknown" else value_of(self.source, node), kind)

    def _kind(self, node: Node) -> WordKind:
        self.budget.step(4)
        while node.type == "command_name" and node.child_count == 1:
            node = node.children[0]
        match node.type:
            case "word" | "number":
                return _kind_of_bare(self._text(node))
            case "raw_string" | "variable_name":
                return "literal"
            case "string" if all(child.type in {'"', "string_content"} for child in node.children):
                return "literal"
            case "concatenation":
                if any(child.type == "word" and _BRACES.search(self._text(child)) for child in node.children):
                    return "unknown"
                kinds = {self._kind(child) for child in node.children}
                return "unknown" if "unknown" in kinds else "glob" if "glob" in kinds else "literal"
            case _:
                return "unknown" if node.is_named else "literal"


_HANDLERS = {
    "command": _SyntaxVisitor._command,
    "command_name": _SyntaxVisitor._command_name,
    "declaration_command": _SyntaxVisitor._declaration,
    "unset_command": _SyntaxVisitor._declaration,
    "variable_assignment": _SyntaxVisitor._assignment,
    "file_redirect": _SyntaxVisitor._redirect,
    "heredoc_redirect": _SyntaxVisitor._heredoc,
    "herestring_redirect": _SyntaxVisitor._children,
    "expansion": _SyntaxVisitor._expansion,
    "test_command": _SyntaxVisitor._test,
    "arithmetic_expansion": _SyntaxVisitor._arithmetic,
    "for_statement": _SyntaxVisitor._loop,
}


def _kind_of_bare(source: str) -> WordKind:
    """An unquoted word may be a pattern, or what the shell replaces."""
    plain = _ESCAPED.sub("", source)
    inside = plain.partition("{")[2].rpartition("}")[0]
    if "," in inside or ".." in inside or plain.startswith("="):
        return "unknown"
    if re.search(r"[*?\[]|[+@!]\(", plain):
        return "glob"
    at_home = plain.startswith("~") or ":~" in plain or "=~" in plain
    return "unknown" if at_home and not plain.startswith("~/") and plain != "~" else "literal"


def tail_of(command: SimpleCommand, start: int) -> SimpleCommand:
    """The command that begins with the word at `start`, as a program that runs another one would run it."""
    return replace(command, words=command.words[start:], assignments=())
