"""What is read of a shell command: its lists, pipelines and words, wherever its here-documents put them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
from tree_sitter import Node

from tui_agent import shell_syntax
from tui_agent.shell_syntax import (
    Command,
    CommandGroup,
    Script,
    Simple,
    UnreadableCommand,
    parse,
    syntax_tree,
)


def shown(script: Script) -> str:
    """The structure on one line; `>` behind what is redirected."""
    parts = []
    for one in script.lists:
        pipelines = [
            ("! " if pipeline.negated else "") + " | ".join(map(command, pipeline.commands))
            for pipeline in one.pipelines
        ]
        joints = [f" {operator} " for operator in one.operators]
        text = "".join(word for pair in zip(pipelines, [*joints, ""], strict=True) for word in pair)
        parts.append(f"{text} &" if one.background else text)
    return "; ".join(parts)


def command(one: Command) -> str:
    match one:
        case Simple(words, redirected):
            return f"{list(words)}{'>' if redirected else ''}"
        case CommandGroup(body):
            return f"({shown(body)})"
        case _:
            return "..."


@pytest.mark.parametrize(
    ("text", "structure"),
    [
        ("a && b | c > f &\nd", "['a'] && ['b'] | ['c']> &; ['d']"),
        ("! a | b || time c; # d", "! ['a'] | ['b'] || ['c']"),
        ("(cd x; ls) > o && { a; }", "(['cd', 'x']; ['ls']) && (['a'])"),
        ("A=b c=$(d) e 'f g' \"h \\\"$i\\\"\" j\\ k l'm'", "['e', 'f g', 'h \"$i\"', 'j k', 'lm']"),
        ("A=b", "[]"),
        ("cut -d\" \" -f1 \"a $b \"", "['cut', '-d ', '-f1', 'a $b ']"),
        ("export A='b c'", "['export', 'A=b c']"),
        ("a > f b c 2>&1 d", "['a', 'b', 'c', 'd']>"),
        ("for x in a; do b; done | c", "... | ['c']"),
        ("[[ -f a && $b == c ]] || ((d > 1))", "['[[', '-f', 'a', '&&', '$b', '==', 'c', ']]'] || ['((d > 1))']"),
        ("cat <<'A' | b && c\nd | e\nA\nf", "['cat']> | ['b'] && ['c']; ['f']"),
        ("python3 - <<'A'\nprint(1)\nA", "['python3', '-']>"),
        ("python3 \\\n  < f", "['python3']>"),
        ("cat <<A b\nd\nA", "['cat', 'b']>"),
        ("cat <<A\nnever closed", "['cat']>"),
        (f"cat > f <<'A'\n{'x | `y` ' * 2_000}\nA\nls", "['cat']>; ['ls']"),
    ],
)  # fmt: skip
def test_structure(text: str, structure: str) -> None:
    assert shown(parse(text)) == structure


@pytest.mark.parametrize(
    "text",
    [
        "f() { a; }", "a && ", "a 'b", "a $(b", "echo (a)", "export A=(1)", "( " * 60 + "a" + " )" * 60, "a b " * 6_000,
        "a\0b", "A=b if c; then d; fi", "a|" * 1_001 + "b",
    ],
)  # fmt: skip
def test_what_is_not_read_says_so(text: str) -> None:
    with pytest.raises(UnreadableCommand):
        parse(text)


def test_how_long_hostile_text_is_looked_at_goes_by_a_count(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[bool] = []

    def counted(source: bytes, halted: Callable[[bool], bool]) -> Node:
        def look(error: bool) -> bool:
            looks.append(error)
            return halted(error)

        return syntax_tree(source, look)

    monkeypatch.setattr(shell_syntax, "syntax_tree", counted)
    with pytest.raises(UnreadableCommand):
        parse("elif|<<A" * 390)
    assert 50 < len(looks) <= 2 * 121  # also with an end put behind the here-document


def test_the_grammar_is_loaded_when_a_command_is_read_and_not_before() -> None:
    code = (
        "import sys, tui_agent.permissions.judge, tui_agent.core.fold, tui_agent.core.recovery.writes as writes;"
        "before = 'tree_sitter' in sys.modules; writes.writes('ls'); print(before, 'tree_sitter' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False True\n"
