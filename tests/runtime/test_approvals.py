"""Who is asked, and what "for this session" covers."""

from __future__ import annotations

import pytest

from tui_agent.core.events import Approval
from tui_agent.runtime.approvals import allowed_by, needs_approval, session_rule
from tui_agent.tools.registry import default_tools
from tui_agent.tools.tool import Effect

TABLE = [
    (Approval.ASK, {Effect.WRITE, Effect.COMMAND}),
    (Approval.WRITES, {Effect.COMMAND}),
    (Approval.ALL, set()),
]


@pytest.mark.parametrize(("approve", "asking"), TABLE)
def test_which_effects_ask(approve: Approval, asking: set[Effect]) -> None:
    assert {effect for effect in Effect if needs_approval(effect, approve)} == asking


COVERED = [
    ("pytest -q", "pytest tests"),
    ("pytest", "pytest -xvs -n4 tests/a.py::test_b -k 'a and not b' --tb=short"),
    ("pytest -q", "time pytest"),
    ("ls", "ls -la src"),
    ("cat a.txt", "cat 'a b.txt' \"c d\" e\\ f"),
    ("grep a b", "grep -rn 'x | y; z' src"),
    ("rg a", "rg -n --hidden -A3 'a.*b' src"),
    ("ruff check", "ruff check . --select E501"),
    ("mypy", "mypy --strict pkg"),
    ("cargo test", "cargo test --release name -- --nocapture"),
    ("go test ./...", "go test -run TestA -v ./pkg"),
    ("npm test", "npm test"),
    ("git status", "git status -sb"),
    ("git diff", "git diff --stat HEAD~1 -- src"),
    ("git log", "git log --oneline -n5"),
]


@pytest.mark.parametrize(("allowed", "asked"), COVERED)
def test_a_program_that_does_only_what_its_name_says_is_allowed_with_other_arguments(
    allowed: str, asked: str
) -> None:
    assert covers(allowed, asked)


NOT_COVERED = [
    # Other programs, operators, several commands
    ("pytest -q", "ruff check"),
    ("pytest -q", "pytest; rm -rf ."),
    ("pytest -q", "pytest && rm -rf ."),
    ("pytest -q", "pytest | sh"),
    ("pytest -q", "pytest & rm x"),
    ("pytest -q", "pytest\nrm x"),
    ("pytest -q", "! pytest"),
    ("pytest -q", "(pytest)"),
    ("pytest -q", "pytest > setup.py"),
    ("pytest -q", "pytest < x"),
    ("git status", "git push --force"),
    ("cargo test", "cargo run"),
    ("ruff check", "ruff clean"),
    ("npm test", "npm install x"),
    # Assignments, expansions
    ("PYTHONPATH=. pytest", "PYTHONPATH=. rm -rf src"),
    ("PYTHONPATH=. pytest", "PYTHONPATH=. pytest -x"),
    ("pytest", "PYTHONPATH=evil pytest"),
    ("LANG=C ls", "LANG=C rm -rf victim"),
    ("LANG=C ls", "LANG=C sh evil.sh"),
    ("LANG=C ls", "LANG=C ls -l"),
    ("pytest", "pytest $(rm x)"),
    ("pytest", "pytest `rm x`"),
    ("pytest", "pytest $OPTIONS"),
    ("pytest", 'pytest "$OPTIONS"'),
    ("cat a", "cat <(rm x)"),
    ("ls", "ls *"),
    ("ls", "ls ?x"),
    ("ls", "ls {a,b}"),
    ("ls", "ls ~"),
    ("ls", "ls $'a'"),
    # Programs that run others, wrappers
    ("nice pytest", "nice rm -rf src"),
    ("setsid pytest", "setsid rm -rf src"),
    ("uv run pytest", "uv run rm"),
    ("busybox ls", "busybox rm -rf src"),
    ("python3.11 a.py", "python3.11 b.py"),
    ("python a.py", "python b.py"),
    ("sh a.sh", "sh b.sh"),
    (". ./ok.sh", ". ./evil.sh"),
    ("timeout 5 ls", "timeout 5 rm x"),
    ("env ls", "env rm x"),
    ("find . -name x", "find . -exec rm {} +"),
    ("tar xf a", "tar xf a --to-command=sh"),
    ("rm a.txt", "rm b.txt"),
    ("/bin/rm a", "/bin/rm b"),
    ("./pytest", "./pytest -q"),
    ("/tmp/x/ls", "ls"),
    # Options that run, load, write or configure
    ("pytest", "pytest -p evil"),
    ("pytest", "pytest -xp evil"),
    ("pytest", "pytest '-p' evil"),
    ("pytest", "pytest -pevil"),
    ("pytest", "pytest -c evil.ini"),
    ("pytest", "pytest --rootdir=x"),
    ("pytest", "pytest -o python_files=x"),
    ("pytest", "pytest --basetemp=src"),
    ("pytest", "pytest --overr x"),
    ("pytest", "pytest @args"),
    ("rg a", "rg --pre evil a"),
    ("rg a", "rg --pre=evil a"),
    ("rg a", "rg -nz a"),
    ("mypy x", "mypy --python-executable evil x"),
    ("mypy x", "mypy --python-exec evil x"),
    ("ruff check", "ruff check --fix"),
    ("ruff check", "ruff check -o x"),
    ("cargo test", "cargo test --config evil"),
    ("cargo test", "cargo +evil test"),
    ("go test", "go test -exec evil"),
    ("go vet", "go vet -vettool=evil"),
    ("npm test", "npm test --script-shell=evil"),
    ("git status", "git -c core.fsmonitor=evil status"),
    ("git diff", "git diff --output=x"),
    ("git diff", "git diff --ext-diff"),
    ("git log", "git log --output=x"),
    ("diff a b", "diff -l a b"),
    # Paths outside of the workspace
    ("cat a", "cat /etc/passwd"),
    ("cat a", "cat ../other"),
    ("cat a", "cat src/../../other"),
    ("ls", "ls '~'/x"),
    ("grep a b", "grep -f/etc/passwd b"),
    ("grep a b", "grep --file=/etc/passwd b"),
    ("pytest", "pytest /tmp/evil"),
    ("pytest", "pytest --ignore=../x"),
    # What looks like a blank and is none, what is not closed
    ("ls", "ls\r-la"),
    ("ls", "ls\u00a0-la"),
    ("ls", "ls 'a"),
]


@pytest.mark.parametrize(("allowed", "asked"), NOT_COVERED)
def test_anything_that_could_do_more_is_allowed_as_exactly_that_call(allowed: str, asked: str) -> None:
    assert not covers(allowed, asked)
    assert covers(asked, asked)


def covers(allowed: str, asked: str) -> bool:
    """Whether allowing the one command for the session allows the other."""
    bash = default_tools().get("bash")
    assert bash is not None
    rule, _ = session_rule(bash, {"command": allowed})
    return allowed_by(frozenset({rule}), bash, {"command": asked})


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("cat a", "`cat` with any arguments on paths inside the workspace, alone"),
        ("npm test", "`npm test` without options, on paths"),
        ("git status", "-u --branch --ignored"),
        ("rm a", "exactly this call, again"),
        ("PYTHONPATH=. pytest", "exactly this call, again"),
    ],
)
def test_the_words_say_what_is_covered(command: str, words: str) -> None:
    bash = default_tools().get("bash")
    assert bash is not None
    assert words in session_rule(bash, {"command": command})[1]


def test_another_time_limit_makes_another_call_where_the_call_itself_was_allowed() -> None:
    bash = default_tools().get("bash")
    assert bash is not None
    rule, _ = session_rule(bash, {"command": "make"})
    assert not allowed_by(frozenset({rule}), bash, {"command": "make", "timeout": 900})


def test_one_file_edit_allowed_for_the_session_covers_every_file_edit() -> None:
    tools = default_tools()
    write, edit = tools.get("write_file"), tools.get("edit_file")
    assert write is not None
    assert edit is not None
    rule, words = session_rule(write, {"path": "a", "content": ""})
    assert allowed_by(frozenset({rule}), edit, {"path": "b", "old": "x", "new": "y"})
    assert "every file edit" in words
