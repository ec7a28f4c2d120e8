"""What a run teaches, read from its events as the live loop, an import and a hook's journal make them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tui_agent.core import events
from tui_agent.core.projections.call_subject import families_of
from tui_agent.core.projections.incidents import Incidents
from tui_agent.playbook.lessons import Lesson, lessons_of, sign_of

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


def test_a_command_that_prepared_the_same_call_is_the_repair() -> None:
    (lesson,) = run(("python3 app.py", NO_MODULE), ("pip install pyyaml", None), ("python3 app.py", None))
    assert tries(lesson) == [("first", "pip install", True)]
    (lesson,) = run(
        ("python3 app.py", NO_MODULE),
        ("pip install yaml", None),
        ("python3 app.py", NO_MODULE),
        ("make setup", None),
        ("python3 app.py", None),
    )
    assert tries(lesson) == [("first", "pip install", False), ("first", "make setup", True)]


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
    ],
    ids=["a repetition", "an edit", "other arguments", "another script of the model's own"],
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


def test_a_failure_of_another_name_has_the_same_shape_and_not_the_same_sign() -> None:
    one, other = (sign_of("bash", {"command": f"python3 {n}.py"}, NO_MODULE.replace("yaml", n)) for n in "ab")
    assert one.exact != other.exact
    assert one.shape == other.shape
