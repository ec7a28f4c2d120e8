"""What a run teaches, read from its events as the live loop, an import and a hook's journal make them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import pytest

from tui_agent.core import events
from tui_agent.core.projections.call_subject import families_of
from tui_agent.core.projections.incidents import Incidents
from tui_agent.playbook.lessons import Lesson, lessons_of, sign_of
from tui_agent.playbook.missing import missing_in

MISSING = "The command failed with exit code 127.\nbash: line 1: pytest: command not found"
NO_MODULE = "The command failed with exit code 1.\nModuleNotFoundError: No module named 'yaml'"


def run(*steps: tuple[str, str | None], tool: str = "bash", argument: str = "command") -> tuple[Lesson, ...]:
    """The lessons of a run of calls, a step each: what was called, and its error or None."""
    incidents, seq = Incidents(), 0
    for number, (call, error) in enumerate(steps, 1):
        facts: dict[str, Any] = {"call_id": f"c{number}", "tool": tool, "input": {argument: call}, "index": 0}
        for event in _step(number, facts, error):
            seq += 1
            incidents = incidents.apply(event.stamped(seq, float(seq)))
    return lessons_of(incidents)


def _step(number: int, facts: dict[str, Any], error: str | None) -> Iterable[events.Event]:
    yield events.IterationStarted(iteration=number)
    if error is None:
        yield events.ToolSucceeded(**facts, content="ok")
    else:
        failure = events.Failure(
            kind=events.FailureKind.TOOL_EXECUTION, message=error, tool=facts["tool"], input=facts["input"]
        )
        yield events.ToolFailed(**facts, content=error, failure=failure)
    yield events.IterationFinished(iteration=number)


def tries(lesson: Lesson) -> list[tuple[str, str, bool]]:
    return [(one.repair.form, one.repair.name, one.worked) for one in lesson.tries]


@pytest.mark.parametrize(
    ("command", "families"),
    [
        ("pytest -q tests/x.py", ("pytest",)),
        ("/usr/bin/python3 -m pytest a", ("python3 -m pytest",)),
        ("./bin/test a && echo done", ("bin/test",)),
        ("cd x && timeout 5 npm run build | tail -3", ("npm run",)),
        ("python ./manage.py migrate", ("python manage.py migrate",)),
        ("PYTHONPATH=. python3 -c 'import x'", ("python3 -c",)),
        ("sudo apt-get install -y x; make docs", ("apt-get install", "make docs")),
        ("ls a; cat b", ("ls", "cat")),
        ("if [", ()),
    ],
)
def test_a_command_belongs_to_a_family(command: str, families: tuple[str, ...]) -> None:
    assert families_of(command) == families


def test_another_program_that_worked_is_the_repair_and_what_was_tried_in_vain_counts_too() -> None:
    lessons = run(
        ("pytest tests/a.py", MISSING),
        ("python3 -m pytest tests/a.py", "exit code 1\n/usr/bin/python3: No module named pytest"),
        ("ls bin", None),
        ("bin/test tests/a.py", None),
    )
    assert tries(lessons[0]) == [("instead", "python3 -m pytest", False), ("instead", "bin/test", True)]
    assert lessons[0].sign.about == "pytest"
    assert lessons[0].tries[-1].repair.example == "bin/test tests/a.py"
    assert not lessons[0].at_once
    assert tries(lessons[1]) == [("instead", "bin/test", True)]


NO_NUMPY = NO_MODULE.replace("yaml", "numpy")
NO_HEADER = (
    "exit code 1\nsrc/a.c:3:10: fatal error: yaml.h: No such file or directory\nmake: *** [a.o] Error 1"
)


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([(NO_MODULE, "pip install pyyaml")], [[("first", "pip install pyyaml", True)]]),
        ([(NO_MODULE, "sudo python3 -m pip install -q 'pyyaml>=6'")], [[("first", "pip install pyyaml", True)]]),
        (
            [(NO_MODULE, "pip install nothing"), (NO_MODULE, "make setup")],
            [[("first", "pip install nothing", False), ("first", "make setup", True)]],
        ),
        (
            [(NO_MODULE, "pip install pyyaml"), (NO_NUMPY, "pip install numpy")],
            [[("first", "pip install pyyaml", True)], [("first", "pip install numpy", True)]],
        ),
        (
            [(NO_HEADER, "apt update && apt install -y curl git libyaml-dev")],
            [[("first", "apt-get install libyaml-dev", True)]],
        ),
        ([(NO_HEADER, "apt-get install -y curl && npm ci")], [[]]),
        ([("exit code 3\nfatal: the tables are not there", "make tables")], [[("first", "make tables", True)]]),
        ([("exit code 3\nfatal: the tables are not there", "apt-get install -y sqlite3")], [[]]),
        ([("exit code 3\nfatal: the tables are not there", "git submodule update --init")], [[]]),
    ],
    ids=[
        "named as what was missing", "another name of the installer", "one that changed nothing",
        "one after the other", "the package of many", "unclear which", "the project's own",
        "a package for nothing named", "a common command for nothing named",
    ],
)  # fmt: skip
def test_a_command_that_brought_what_was_missing_is_the_repair(
    steps: list[tuple[str, str]], found: list[list[tuple[str, str, bool]]]
) -> None:
    course: list[tuple[str, str | None]] = []
    for error, prepared in steps:
        course += [("./app", error), (prepared, None)]
    assert [tries(lesson) for lesson in run(*course, ("./app", None))] == found


def test_a_path_that_was_corrected_is_the_repair() -> None:
    error = "There is no file conf/app.yml. Did you mean conf/app.yaml?"
    (lesson,) = run(("conf/app.yml", error), ("conf/app.yaml", None), tool="read_file", argument="path")
    assert tries(lesson) == [("instead", "conf/app.yaml", True)]
    assert lesson.at_once
    assert lesson.sign.general == ""


@pytest.mark.parametrize(
    "steps",
    [
        [("python3 app.py", NO_MODULE), ("python3 app.py", None)],
        [("python3 app.py", NO_MODULE), ("cat > app.py <<'E'\nprint(1)\nE", None), ("python3 app.py", None)],
        [("make test", "exit code 2: boom"), ("make test -k", None)],
        [("python3 a.py", "exit code 1\nboom"), ("python3 a_v2.py", None)],
        [("cargo build", "exit code 101\nerror: boom"), ("cargo metadata", None)],
        [("rg -n word src", "bash: rg: command not found"), ("go test ./...", None)],
        [("rg -n word src", "bash: rg: command not found"), ("make -C src", None)],
    ],
    ids=[
        "a repetition",
        "an edit",
        "other arguments",
        "another script of the model's own",
        "another subcommand",
        "another program",
        "another aim at the same path",
    ],
)
def test_what_cannot_be_said_again_is_no_repair(steps: list[tuple[str, str | None]]) -> None:
    assert tries(run(*steps)[0]) == []


def test_a_statement_of_another_language_is_no_program() -> None:
    error = "Unknown column 'x' in 'field list'"
    lessons = run(("SELECT x FROM t", error), ("SELECT y FROM t", None), tool="execute")
    assert [try_ for lesson in lessons for try_ in lesson.tries] == []


def test_what_the_user_level_keeps_tells_nothing_of_a_workspace() -> None:
    sign = sign_of("bash", {"command": "pytest secret_project/tests"}, MISSING)
    assert sign.about == "pytest"
    assert len(sign.general) == 16
    for command in ("bin/test a", "./deploy.sh", "/opt/acme/run x", "python3 acme/tool.py"):
        assert sign_of("bash", {"command": command}, "exit code 1\nboom").general == ""
    (lesson,) = run(("pytest tests/a.py", MISSING), ("bin/test tests/a.py", None))
    assert not lesson.tries[-1].repair.general


@pytest.mark.parametrize(
    ("command", "error", "exact"),
    [
        ("python3 a.py", NO_MODULE, "bash|module yaml"),
        ("make test", f"{NO_MODULE}\nThe above exception was the direct cause\nAppError: no", "bash|module yaml"),
        ("pytest a", MISSING, "bash|program pytest"),
        ("su - me -c 'go test'", "-sh: 1: go: not found", "bash|program go"),
        ("foo", "foo : The term 'foo' is not recognized as the name of a cmdlet", "bash|program foo"),
        ("cargo build", "error: linker `cc` not found", "bash|program cc"),
        ("npm start", "Error: Cannot find module 'express'", "bash|module express"),
        ("make", NO_HEADER, "bash|library yaml.h"),
        ("make", "/usr/bin/ld: cannot find -lssl\ncollect2: error", "bash|library ssl"),
        ("cargo build", "The system library `libudev` required by crate `x` was not found.", "bash|library libudev"),
        ("./a", "./a: error while loading shared libraries: libX11.so.6: cannot open", "bash|library libX11.so"),
        ("go run .", 'cgo: exec gcc: exec: "gcc": executable file not found in $PATH', "bash|program gcc"),
        ("cargo build", "stderr\\nPackage alsa was not found in the pkg-config search path.\\n", "bash|library alsa"),
        ("cargo build", "environment variable\\nNo package \\'alsa\\' found\\n", "bash|library alsa"),
        ("apt-get install x", "E: Unable to locate package x", "bash|package x"),
        ("psql", "connection to server at 127.0.0.1, port 5432 failed: Connection refused", "bash|port 5432"),
        ("npm test", "Error: connect ECONNREFUSED 127.0.0.1:6379", "bash|port 6379"),
        ("cat a/b.txt", "cat: a/b.txt: No such file or directory", "bash|path a/b.txt"),
        ("make", "a.c:1: error: boom\nmake: *** [a.o] Error 1", "bash|make|a.c:1: error: boom"),
        ("cmake .", "-- Looking for sgemm_ - not found\nCMake Error: boom", "bash|cmake|CMake Error: boom"),
        ("I think so", "bash: I: command not found", "bash|"),
    ],
)  # fmt: skip
def test_a_failure_is_known_by_what_was_missing_else_by_its_innermost_cause(
    command: str, error: str, exact: str
) -> None:
    assert sign_of("bash", {"command": command}, error).exact.startswith(exact)


@pytest.mark.parametrize("text", ["a" * 40_000, "/a" * 20_000, "'a@b' " * 6_000, "a: b\n" * 8_000])
def test_a_long_error_is_looked_through_in_no_time(text: str) -> None:
    began = time.process_time()
    assert missing_in(text) is None
    assert time.process_time() - began < 2


def test_failures_of_two_missing_things_are_not_taken_for_one() -> None:
    one, other = (sign_of("bash", {"command": "make"}, NO_MODULE.replace("yaml", n)) for n in ("a", "b"))
    assert one.shape != other.shape
    one, other = (
        sign_of("bash", {"command": "make"}, f"exit code 2\nerror: no rule for {n}.txt") for n in "ab"
    )
    assert one.exact != other.exact
    assert one.shape == other.shape
