"""The rules in the code, in the book and in the cases are the same; and every case has the form."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.cases import FOLDER, Case, CaseError, load_cases
from tui_agent.config.settings import Settings
from tui_agent.core.recovery.detectors import DETECTORS
from tui_agent.core.recovery.policy import PRESETS, RecoveryPolicy
from tui_agent.core.recovery.rules import Rule
from tui_agent.rule_book import Section, read_book

ROOT = Path(__file__).resolve().parents[1]
CASES = load_cases()
RULES = frozenset(rule.value for rule in Rule)
BOOK = read_book(ROOT / "docs" / "RECOVERY.md")
LABELS = {"Why", "Key", "Source", "Code", "Case"}

SILENT = frozenset(
    {
        Rule.FAILURE_NO_MATCH,
        Rule.FAILURE_ERROR_PREFIX,
        Rule.FAILURE_SIBLING,
        Rule.FAILURE_BATCH,
        Rule.FAILURE_NO_WORK,
        Rule.FORM_TEXT_CALL,
        Rule.FORM_LOST_CALL,
        Rule.FORM_NO_ANSWER,
        Rule.FORM_ECHO,
        Rule.FORM_REPETITION,
        Rule.ATTEMPTS_PROGRESS,
        Rule.STUCK_WANTED,
        Rule.OPERATOR_RETRY,
        Rule.OPERATOR_EDIT,
        Rule.OPERATOR_SKIP,
        Rule.OPERATOR_ANSWER,
        Rule.PARTIAL_ANSWER,
    }
)
"""Rules that show in what is counted, refused or answered, and in no verdict of their own."""


def named_in(case: Case) -> frozenset[str]:
    """Every rule that an expectation of the case names."""
    return frozenset().union(*(step.then.rule_ids() for step in case.steps if step.then))


def test_code_book_and_cases_have_the_same_rules() -> None:
    assert set(BOOK) == RULES
    assert {rule for case in CASES for rule in case.proves} == RULES


def test_the_book_has_a_row_for_each_detector_in_their_order() -> None:
    text = (ROOT / "docs" / "RECOVERY.md").read_text("utf-8")
    table = text.partition("## The detectors\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| (?!detector )(\w+) \|", table, re.MULTILINE) == [one.name for one in DETECTORS]


def test_each_detector_has_rules() -> None:
    assert {one.name for one in DETECTORS} - {rule.partition(".")[0] for rule in BOOK} == set()


def test_every_rule_is_named_where_it_acts() -> None:
    """As a member where a verdict, refusal, note or outcome carries it, else by its id in the docstring there."""
    code = "".join(
        path.read_text("utf-8")
        for path in (ROOT / "tui_agent").rglob("*.py")
        if path.name not in {"rules.py", "explain.py"}
    )
    members, ids = set(re.findall(r"\bRule\.(\w+)", code)), set(re.findall(r"`([\w.-]+)`", code))
    assert [rule.value for rule in Rule if rule.name not in members and rule.value not in ids] == []


@pytest.mark.parametrize("section", BOOK.values(), ids=lambda section: section.rule)
def test_a_section_names_code_keys_and_a_case_that_exist(section: Section) -> None:
    assert section.does.endswith(".")
    assert LABELS - {"Key"} <= section.lines.keys() <= LABELS
    (code,) = re.findall(r"`([^`]+)`", section.lines["Code"])
    assert (ROOT / code).is_file()
    (case,) = re.findall(r"`([^`]+)`", section.lines["Case"])
    assert section.rule in next(one.proves for one in CASES if one.id == case)


@pytest.mark.parametrize(
    "section", [one for one in BOOK.values() if "Key" in one.lines], ids=lambda section: section.rule
)
def test_a_key_exists_and_its_number_is_the_default(section: Section) -> None:
    parameters, settings = PRESETS["combined"].model_dump(mode="json"), Settings().model_dump(mode="json")
    for key in re.findall(r"`([^`]+)`", section.lines["Key"]):
        name, _, value = key.partition(" = ")
        recovery = name.removeprefix("recovery.")
        if recovery != name:
            assert recovery in settings["recovery"]
        else:
            assert name in settings
        if value:
            default = parameters[recovery] if recovery != name else settings[name]
            assert default == tomllib.loads(f"value = {value}")["value"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_case_names_rules_that_exist_and_expects_what_it_proves(case: Case) -> None:
    assert named_in(case) | set(case.proves) <= RULES
    assert case.why
    assert case.without or set(case.proves) <= named_in(case) | SILENT
    parameters = RecoveryPolicy.model_fields.keys()
    assert (case.settings.keys() | case.without.keys()) <= parameters


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ('[{ calls = [{ bash = "ls", loudly = true }], then = {} }]', "names one tool"),
        ('[{ calls = [{ search = "x" }], then = {} }]', "written as a table"),
        ('[{ sing = "la" }]', "is no step"),
        ('[{ text = "x", then = { verdict = "perhaps" } }]', "verdict"),
        ('[{ fault = "moody", then = {} }]', "kind"),
        ('[{ text = "x" }]', "no step expects anything"),
    ],
)
def test_what_is_not_part_of_the_form_is_named(tmp_path: Path, steps: str, words: str) -> None:
    head = '[[case]]\nid = "x"\nwhy = "y"\nproves = []\nsteps = '
    (tmp_path / "bad.toml").write_text(head + steps)
    with pytest.raises(CaseError, match=words) as raised:
        load_cases(tmp_path)
    assert str(raised.value).startswith("bad.toml, case x")


def test_the_cases_stand_one_step_a_line() -> None:
    for path in FOLDER.glob("*.toml"):
        for line in path.read_text("utf-8").splitlines():
            assert line.count("then = {") <= 1, f"{path.name}: {line}"
