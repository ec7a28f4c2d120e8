"""Findings are results: which programs report by which exit codes, and what stays a failure."""

from __future__ import annotations

import time

import pytest

from tui_agent.core.recovery.findings import found_by

FOUND = [
    ("pytest -q tests", 1, "1 failed", "pytest"),
    ("python -m pytest", 1, "1 failed", "pytest"),
    ("python3 -bb -W error -m pytest x.py", 1, "1 failed", "pytest"),
    ("/opt/venv/bin/python3.11 -m pytest", 1, "", "pytest"),
    ("./.venv/bin/pytest", 1, "", "pytest"),
    ("PYTHONPATH=. timeout 60 pytest", 1, "", "pytest"),
    ("cd src && pytest", 1, "", "pytest"),
    ("cd src; pytest 2>&1", 1, "", "pytest"),
    ("poetry run pytest", 1, "", "pytest"),
    ("uv run --with x pytest -q", 1, "", "pytest"),
    ("coverage run -m pytest", 1, "", "pytest"),
    ("bash -lc 'cd a && pytest'", 1, "", "pytest"),
    ("set -o pipefail; pytest | tee log", 1, "1 failed", "pytest"),
    ("python -m unittest -v", 1, "FAILED (failures=1)", "unittest"),
    ("pylint src", 30, "", "pylint"),
    ("mypy --strict", 1, "", "mypy"),
    ("ruff check .", 1, "", "ruff check"),
    ("ruff format --check .", 1, "", "ruff format"),
    ("black --check .", 1, "", "black"),
    ("npx prettier --check a.ts", 1, "", "prettier"),
    ("node_modules/.bin/eslint a.js", 1, "", "eslint"),
    ("npx tsc --noEmit", 2, "a.ts(1,2): error TS2322: x", "tsc"),
    ("go vet ./...", 1, "", "go vet"),
    ("cargo +nightly clippy", 101, "", "cargo clippy"),
    ("cargo nextest run", 100, "", "cargo nextest"),
    ("gcc-12 -c a.c", 1, "a.c:1:2: error: x", "gcc"),
    ("javac A.java", 1, "A.java:1: error: x", "javac"),
    ("bundle exec rspec", 1, "", "rspec"),
    ("vendor/bin/phpunit", 2, "", "phpunit"),
    ("ctest --output-on-failure", 8, "", "ctest"),
    ("stylelint a.css", 2, "", "stylelint"),
    ("git diff --check", 2, "a:1: trailing whitespace.", "git diff"),
    (
        "python3 -m sphinx -b linkcheck docs out",
        1,
        "(index: line 3) broken https://x.example - 404",
        "sphinx",
    ),
    (
        "sphinx-build -b linkcheck docs out",
        1,
        "(index: line 3) broken https://x.example - 404",
        "sphinx-build",
    ),
    ("make linkcheck", 2, "(index: line 3) broken https://x.example - 404\nmake: *** [x] Error 1", "make"),
    ("lychee README.md", 2, "", "lychee"),
    ("sh -n a.sh", 2, "a.sh: 2: Syntax error: end of file unexpected", "sh"),
    ("bash -n a.sh", 2, "a.sh: line 2: syntax error: unexpected end of file", "bash"),
    ("node --check a.js", 1, "SyntaxError: Unexpected token", "node"),
    ("ruby -c a.rb", 1, "a.rb:1: syntax error", "ruby"),
    ("python3 -m json.tool a.json", 1, "Expecting value: line 1 column 1 (char 0)", "json.tool"),
    ("bash tests/check.sh", 1, "FAILED (failures=1)", "check.sh"),
    ("linkchecker https://x.example", 1, "", "linkchecker"),
    ("npm run test -- a", 1, "Tests:       1 failed, 2 total", "npm"),
    ("./gradlew test", 1, "> There were failing tests. See the report", "gradlew"),
    ("mvn -q test", 1, "Tests run: 3, Failures: 1, Errors: 0", "mvn"),
    ("make", 2, "a.c:1:2: error: x\nmake: *** [a.o] Error 1", "make"),
    ("tests/runtests.py forms", 1, "FAILED (failures=2)", "runtests.py"),
    ("python manage.py test", 1, "FAILED (errors=2)", "manage.py"),
    ("python reproduce.py", 1, "The fault is there", "reproduce.py"),
    ("./test_all.sh", 1, "2 of 3 differ", "test_all.sh"),
    ("su -s /bin/bash tester -c 'cd /srv && cargo test --workspace'", 101, "", "cargo test"),
    ("runuser -u tester -- cargo test", 101, "", "cargo test"),
    ("sudo -u tester env CI=1 pytest -q", 1, "", "pytest"),
    ("docker exec -w /srv -e CI=1 web pytest -q", 1, "", "pytest"),
    ("docker compose exec -T web bash -lc 'cd /srv && go test ./...'", 1, "FAIL", "go test"),
    ("kubectl exec web -- pytest", 1, "", "pytest"),
    ("find . -name 'test_*.py' | xargs -n 1 pytest -q", 123, "1 failed", "pytest"),
    ("env -i PATH=/bin mvn test", 1, "Tests run: 3, Failures: 1, Errors: 0", "mvn"),
    ("make test", 2, "--- FAIL: TestA (0.00s)\nmake: *** [Makefile:2: test] Error 1", "make"),
    ("dotnet test a.sln", 1, "Failed!  - Failed:     3, Passed:     0, Skipped:     0", "dotnet"),
    ("dotnet test --project a", 2, "Test run summary: Failed!\n  total: 13\n  failed: 13", "dotnet"),
    (
        "dotnet test",
        1,
        "Passed!  - Failed:     0, Passed:    27, Skipped:     0, Total:    27 - A.dll",
        "dotnet",
    ),
    ("dotnet test -v n", 1, "Test Run Successful.\nTotal tests: 2823\n     Passed: 2818", "dotnet"),
    ("dotnet build a.sln", 1, "    0 Warning(s)\n    15 Error(s)", "dotnet"),
    ("go test ./...", 1, "ok  \ta/b\t0.01s\nFAIL\ta/c [build failed]", "go test"),
]


@pytest.mark.parametrize(("command", "code", "output", "program"), FOUND, ids=[row[0] for row in FOUND])
def test_a_documented_code_is_the_program_s_report(
    command: str, code: int, output: str, program: str
) -> None:
    assert found_by(command, f"The command failed with exit code {code}.\n{output}") == program


FAILED = [
    ("pytest", 2, "Interrupted: 1 error during collection"),
    ("pytest", 3, "INTERNALERROR"),
    ("pytest", 4, "ERROR: not found: x"),
    ("pytest", 5, "no tests ran in 0.01s"),
    ("pytest", 127, "bash: pytest: command not found"),
    ("pytest", 137, ""),
    ("pytest", 1, "Traceback (most recent call last):\n  File …\nImportError: cannot import name 'main'"),
    ("python -m pytest", 1, "/usr/bin/python: No module named pytest"),
    ("python -m unittest a", 1, "ImportError: Failed to import test module: a\nFAILED (errors=1)"),
    ("python -m unittest", 1, "Ran 0 tests in 0.0s\nOK"),
    ("pylint a", 1, "a:1:0: F0001: No module named a"),
    ("pylint a", 32, "usage"),
    ("mypy", 2, "a.py:1: error: invalid syntax"),
    ("black a.py", 1, "error: cannot format"),
    ("npm run lint", 1, "npm error Missing script: lint"),
    ("npm install", 1, "npm error code ERESOLVE"),
    ("cargo test", 101, "error: could not find `Cargo.toml` in `/w`"),
    ("cargo run", 101, "thread 'main' panicked at src/main.rs:2:5"),
    ("go test ./...", 1, "go: cannot find main module"),
    ("go vet", 2, "flag provided but not defined"),
    ("gcc a.c", 1, "gcc: error: a.c: No such file or directory"),
    (
        "gcc -o a a.c ./a 5",
        1,
        "/usr/bin/ld: cannot find 5: No such file or directory\ncollect2: error: ld returned 1 exit status",
    ),
    ("npx tsc", 1, "error TS18003: No inputs were found"),
    ("make deploy", 2, "make: *** No rule to make target 'deploy'.  Stop."),
    ("make", 2, "cp: cannot stat 'x'"),
    ("python app.py", 1, "Traceback (most recent call last):\nValueError"),
    (
        "python test_a.py",
        1,
        'Traceback (most recent call last):\n  File "test_a.py", line 1\nSyntaxError: bad',
    ),
    ("python test_a.py", 2, "python: can't open file 'test_a.py'"),
    ("python build.py && pytest", 1, "cannot write"),
    ("cd nowhere && pytest", 1, "bash: line 1: cd: nowhere: No such file or directory"),
    ("pytest || exit 1", 1, "no"),
    ("pytest | tail -3", 1, "no"),
    ("echo 'pytest", 1, "not closed"),
    ("rm test_a.py", 1, "rm: cannot remove 'test_a.py': No such file or directory"),
    ("sh -n none.sh", 2, "sh: 0: cannot open none.sh: No such file"),
    ("bash a.sh", 2, "it broke"),
    ("node a.js", 1, "Error: no"),
    ("cat tests/check", 1, "cat: tests/check: No such file or directory"),
]


@pytest.mark.parametrize(("command", "code", "output"), FAILED, ids=[f"{row[0]} {row[1]}" for row in FAILED])
def test_what_breaks_has_failed(command: str, code: int, output: str) -> None:
    assert found_by(command, f"The command failed with exit code {code}.\n{output}") == ""


def test_a_program_of_ones_own_is_known_by_its_codes() -> None:
    message = "The command failed with exit code 7.\nx"
    assert found_by("our check a", message) == ""
    assert found_by("our check a", message, {"our check": (7,)}) == "our check"


@pytest.mark.parametrize("piece", ["pytest ", "python -m ", "npx ", "a; ", "(", "uv run "])
def test_a_hostile_command_takes_little_time(piece: str) -> None:
    hostile = piece * (18_000 // len(piece)) + "pytest"
    before = time.process_time()
    found_by(hostile, "exit code 1\n" + hostile * 20)
    found_by("make", "exit code 1\n" + ("= 1 Tests run: 1 runs, " + hostile) * 50)
    assert time.process_time() - before < 2.0


@pytest.mark.parametrize(
    ("command", "output"),
    [("pytest -q", "\n" * 7_900), ("1" * 19_000 + "!", "")],
    ids=["blank lines", "digits"],
)
def test_what_goes_on_and_on_takes_no_time(command: str, output: str) -> None:
    started = time.process_time()
    found_by(command, f"exit code 1\n{output}x")
    assert time.process_time() - started < 0.5
