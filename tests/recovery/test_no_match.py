"""A search that finds nothing is an answer; an error, or a code that another command may have set, is not."""

from __future__ import annotations

import json
import time

import pytest

from tui_agent.core.recovery.no_match import finds_nothing, in_words, nothing_found_by

OURS = "The command failed with exit code 1.\n(no output)"
DIFFERENCE = "1c1\n< Traceback (most recent call last):\n---\n> error: b"

ANSWERS = [
    "grep -rn needle src",
    "egrep 'a|b' x",
    "fgrep a x",
    "/usr/bin/grep a x",
    "rg needle",
    "ag needle",
    "ack needle",
    "pgrep -f server",
    "which cargo",
    "command -v cargo",
    "diff a b",
    "cmp -s a b",
    "git diff --exit-code",
    "git diff --quiet HEAD",
    "git -C lib grep needle",
    "git --no-pager grep needle",
    "git merge-base --is-ancestor a b",
    "test -f x",
    "[ -f x ]",
    "[[ $a == b* && -f x ]]",
    "((1 > 2))",
    "expr 1 = 2",
    "cat x | grep needle",
    "find . -name '*.py' | grep needle",
    "nl -ba x | sed -n '1,5p' | grep -A 2 needle",
    "cd src && grep needle x",
    "cd src; ls\ngrep needle x",
    "(cd src && grep needle x)",
    "{ cd src; grep needle x; }",
    "LC_ALL=C grep needle x",
    "timeout 5 grep needle x",
    "timeout -k 1 5 grep needle x",
    "env LC_ALL=C nice -n 5 grep needle x",
    "bash -lc 'grep needle x'",
    "bash -c \"cd src && rg 'a b'\"",
    "grep needle x 2>/dev/null",
    "grep needle < x",
    "grep -e 'a;b' -e \"it's || that\" x  # a comment",
    "cat <<'EOF' > x\nif then || $(\nEOF\ngrep needle x",
    "for f in *; do echo $f; done; grep needle x",
    "make || true; grep needle x",
    "set -e; cd src; grep needle x",
    "set -o pipefail; cat x | grep needle",
    "find . -name '*.py' -exec grep -l needle {} +",
    "grep needle \\\n  x",
    "grep -q a x || grep -q b x",
    "make || grep -q a x",
    "su - tester -c 'cd /srv && grep needle x'",
    "sudo grep needle x",
    "docker exec -it web grep needle /etc/x",
]

FAILURES = [
    "python run.py",
    "false",
    "exit 1",
    "pytest -q",
    "bin/test sympy/core",
    "./grep needle",
    "git diff",
    "git push",
    "command ls",
    "grep needle x || exit 1",
    "grep needle x || true",
    "! grep needle x",
    "grep needle x | python -",
    "python check.py && grep needle x",
    "make && test -f x",
    "set -e; ./build; grep needle x",
    "set -o pipefail; ./build | grep needle",
    "if grep -q needle x; then false; fi",
    "grep needle x &",
    "bash -c './build && grep needle x'",
    "bash script.sh",
    "grep 'needle",
    "find . -exec grep needle {} \\;",
    "f() { grep needle x; }",
    "",
    "a" * 30_000 + " && grep needle x",
]


@pytest.mark.parametrize("command", ANSWERS)
def test_a_search_or_comparison_in_silence_is_an_answer(command: str) -> None:
    assert finds_nothing(command, OURS)


@pytest.mark.parametrize("command", FAILURES)
def test_a_code_that_another_command_may_have_set_is_a_failure(command: str) -> None:
    assert not finds_nothing(command, OURS)


@pytest.mark.parametrize(
    "message",
    [
        OURS,
        "exit code 1",
        "exit code 1: ",
        "Error: The command failed with exit code 1.\n(no output)",
        "<returncode>1</returncode>\n<output>\n</output>",
        "Exit code 1",
        "Exit code: 1\nWall time: 0.1 seconds\nOutput:\n",
        "[The command completed with exit code 1.]",
        "exit code 1\nCommand failed: 'grep needle x'\nreturncode: 1\nstdout: \nstderr: ",
        json.dumps({"exit_code": 1, "output": ""}),
        json.dumps({"output": "", "metadata": {"exit_code": 1, "duration_seconds": 0.1}}),
    ],
)
def test_the_code_is_read_out_of_every_form_of_a_failure(message: str) -> None:
    assert finds_nothing("grep needle x", message)
    assert not finds_nothing("grep needle x", message.replace("1", "2", 1))


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("grep needle x", "grep: x: No such file or directory"),
        ("grep needle x", "bash: line 1: grep: command not found"),
        ("grep needle x", "Usage: grep [OPTION]... PATTERNS [FILE]..."),
        ("cd x && grep needle y", "bash: line 1: cd: x: No such file or directory"),
        ("cp a b && grep needle y", "cp: -r not specified; omitting directory 'a'"),
        ("git grep needle", "fatal: not a git repository (or any of the parent directories): .git"),
        ("test 1 -eq a", "bash: line 1: test: a: integer expression expected"),
        ("diff a b", "diff: b: No such file or directory"),
        ("grep needle x", "Command timed out"),
        ("grep needle x", "something that grep would not print"),
        ("cat x && grep needle x", "Traceback (most recent call last):\n  File 'x'"),
    ],
)
def test_the_text_of_an_error_makes_it_a_failure(command: str, output: str) -> None:
    assert not finds_nothing(command, f"exit code 1\n{output}")


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("diff a b", DIFFERENCE),
        ("git diff --exit-code", DIFFERENCE),
        ("ls; grep needle x", "x\ny"),
        ("grep -n a x\ngrep -n b x", "3:a"),
        ("grep -c needle x", "0"),
        ("bind -p | grep needle", "bash: line 1: bind: warning: line editing not enabled"),
        ("which cargo", "which: no cargo in (/usr/bin:/bin)"),
        ("type cargo", "bash: line 1: type: cargo: not found"),
        ("expr 1 = 2", "0"),
    ],
)
def test_output_that_belongs_to_the_answer_leaves_it_one(command: str, output: str) -> None:
    assert finds_nothing(command, f"exit code 1\n{output}")


@pytest.mark.parametrize(
    ("command", "code", "answer"),
    [
        ("find . | xargs grep needle", 123, True),
        ("find . | xargs python", 123, False),
        ("grep needle x", 123, False),
        ("grep needle x", 2, False),
        ("diff a b", 2, False),
        ("grep needle x", 127, False),
        ("xmllint --version", 127, True),
        ("cmake --version && ninja --version", 127, True),
        ("xmllint --noout a.xml", 127, False),
        ("ninja", 127, False),
    ],
)
def test_only_the_code_that_means_nothing_found_counts(command: str, code: int, answer: bool) -> None:
    assert finds_nothing(command, f"exit code {code}") is answer


def test_a_probe_for_a_program_that_is_not_there_is_a_search() -> None:
    said = "The command failed with exit code 127.\nbash: line 1: xmllint: command not found"
    assert in_words(nothing_found_by("xmllint --version", said)) == "xmllint is not there"
    assert not finds_nothing("xmllint --version", f"{said}\nTraceback (most recent call last)")


def test_a_message_without_an_exit_code_is_no_answer() -> None:
    assert not finds_nothing("grep needle x", "the tool broke")
    assert not finds_nothing("grep needle x", "{not json")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("cd a && grep x y", "grep found nothing"),
        ("diff a b", "diff found differences"),
        ("[ -f x ]", "the condition of [ does not hold"),
        ("git diff --quiet", "git diff found differences"),
    ],
)
def test_the_answer_is_said_in_words(command: str, words: str) -> None:
    assert in_words(nothing_found_by(command, OURS)) == words


@pytest.mark.parametrize(
    "command",
    [
        "$(" * 9_000,
        "`" * 19_999,
        "((" * 9_000,
        '"$(' * 6_000,
        "{ " * 9_000,
        "if " * 6_000,
        "<<a " * 4_000 + "\n" * 3_000,
        "a=" * 9_000 + " grep x y",
        "timeout " * 2_000 + "grep",
        "[[ " * 6_000,
        "bash -c " * 2_000,
    ],
)
def test_hostile_commands_take_no_time(command: str) -> None:
    started = time.process_time()
    finds_nothing(command, OURS)
    finds_nothing("grep x y", "exit code 1\n" + command * 50)
    assert time.process_time() - started < 2
