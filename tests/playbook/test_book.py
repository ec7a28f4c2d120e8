"""Counts, intervals, ageing, and when a repair is said."""

from __future__ import annotations

import pytest

from tui_agent.playbook.book import HALF_LIFE, MOST_ENTRIES, MOST_REPAIRS, Book, wilson
from tui_agent.playbook.lessons import FailureSign, Lesson, Try
from tui_agent.playbook.missing import Kind
from tui_agent.playbook.repairs import Form, Repair

SIGN = FailureSign("bash|program pytest", "bash|program pytest", "", "pytest", "program")
TEST = Repair("instead", "bin/test", "bin/test a", general=False)
MODULE = Repair("instead", "python3 -m pytest", "python3 -m pytest a", general=True)


def lesson(
    *tries: tuple[Repair, bool], sign: FailureSign = SIGN, at_once: bool = False, told: bool = False
) -> Lesson:
    return Lesson(
        sign, "not found", at_once, told, tuple(Try(repair, worked, told) for repair, worked in tries)
    )


def book(*lessons: Lesson, at: float = 0.0, general: bool = False) -> Book:
    made = Book()
    for number, one in enumerate(lessons):
        made = made.learned(str(number), [one], at, general=general)
    return made


def said(known: Book, sign: FailureSign = SIGN, now: float = 0.0) -> str:
    found = known.suggestion(sign, now, general=False)
    return "" if found is None else f"{found.repair} {found.worked}/{found.tried}"


def test_a_repair_is_said_once_the_evidence_carries_it() -> None:
    worked = lesson((TEST, True))
    assert [said(book(*[worked] * times)) for times in range(4)] == ["", "", "bin/test 2/2", "bin/test 3/3"]


def test_nothing_is_said_where_failures_like_it_recover_without_it() -> None:
    assert said(book(*[lesson((TEST, True), at_once=True)] * 9)) == ""


def test_a_failure_that_went_by_without_the_repair_speaks_against_it() -> None:
    assert said(book(*[lesson((TEST, True))] * 4, *[lesson()] * 3)) == "bin/test 4/4"
    assert said(book(*[lesson((TEST, True))] * 4, *[lesson()] * 5)) == ""


@pytest.mark.parametrize(
    ("kind", "form", "is_said"),
    [
        ("program", "instead", True),
        ("library", "first", True),
        ("", "first", True),
        ("program", "first", False),
        ("module", "instead", False),
        ("module", "first", False),
        ("path", "instead", False),
        ("package", "first", False),
        ("port", "first", False),
    ],
)
def test_a_kind_that_is_not_right_often_enough_is_counted_and_held_back(
    kind: Kind, form: Form, is_said: bool
) -> None:
    sign = SIGN._replace(kind=kind)
    known = book(*[lesson((Repair(form, "x y", "", general=False), True), sign=sign)] * 9)
    (offered,) = known.offered(0.0)
    assert (offered.repair.worked, offered.carries, bool(said(known, sign))) == (9, is_said, is_said)


def test_entries_of_older_keys_go_but_the_operators_words_stay() -> None:
    known = book(lesson((TEST, True)), lesson((TEST, True), sign=SIGN._replace(exact="another")))
    entry, repair, _ = known.offered(0.0)[0]
    older = known.edited(entry.id_of(repair), "ask first").model_copy(update={"version": 1})
    kept = Book.model_validate_json(older.model_dump_json()).current
    assert [[one.words for one in entry.repairs] for entry in kept.entries] == [["ask first"]]
    assert (kept.sources, kept.version) == ([], known.version)
    assert known.current is known


def test_what_was_tried_in_vain_counts_against_it() -> None:
    assert said(book(*[lesson((TEST, True))] * 3, *[lesson((TEST, False))] * 9)) == ""
    both = book(*[lesson((MODULE, False), (TEST, True))] * 3)
    assert said(both) == "bin/test 3/3"


def test_a_repair_that_did_not_work_when_it_was_said_is_said_no_more() -> None:
    known = book(*[lesson((TEST, True))] * 3, *[lesson((TEST, False), told=True)] * 2)
    (offered,) = known.offered(0.0)
    assert (offered.repair.harmed, offered.carries, offered.entry.seen) == (2, False, 3)
    assert said(known) == ""


def test_counts_fade_and_what_works_now_outweighs_what_worked_long_ago() -> None:
    old = book(*[lesson((TEST, True))] * 8)
    assert said(old, now=HALF_LIFE) == "bin/test 4/4"
    assert said(old, now=6 * HALF_LIFE) == ""
    newer = old.learned("x", [lesson((TEST, False))] * 3, 4 * HALF_LIFE, general=False)
    newer = newer.learned("y", [lesson((MODULE, True))] * 4, 4 * HALF_LIFE, general=False)
    assert said(newer, now=4 * HALF_LIFE) == "python3 -m pytest 4/4"


def test_a_run_counts_once() -> None:
    known = book(lesson((TEST, True)))
    assert known.learned("0", [lesson((TEST, True))], 0.0, general=False) is known


def test_a_failure_of_the_same_shape_is_told_the_family_and_no_example() -> None:
    known = book(*[lesson((TEST, True))] * 3)
    other = SIGN._replace(exact="bash|pytest|not found in line 2")
    found = known.suggestion(other, 0.0, general=False)
    assert found is not None
    assert (found.repair, found.example) == ("bin/test", "")


def test_what_has_just_failed_is_not_said_again() -> None:
    failed = SIGN._replace(about="bin/test")
    assert said(book(*[lesson((TEST, True))] * 3), failed) == ""


def test_the_users_book_keeps_neither_examples_nor_what_names_the_workspace() -> None:
    sign = SIGN._replace(general="0123456789abcdef")
    known = book(*[lesson((TEST, True), (MODULE, True), sign=sign)] * 3, general=True)
    assert "bin/test" not in known.model_dump_json()
    assert "not found" not in known.model_dump_json()
    found = known.suggestion(sign, 0.0, general=True)
    assert found is not None
    assert (found.repair, found.level, found.example) == ("python3 -m pytest", "user", "")
    assert known.suggestion(SIGN, 0.0, general=True) is None


def test_the_operators_words_are_said_whatever_the_counts_are_and_forgotten_with_the_repair() -> None:
    known = book(lesson((TEST, False)))
    ((entry, repair, _),) = known.offered(0.0)
    edited = known.edited(entry.id_of(repair), "run bin/test from the top")
    assert said(edited).startswith("run bin/test from the top")
    assert said(edited.without(entry.id_of(repair))) == ""
    assert edited.without("all") == Book()


def test_a_book_stays_bounded() -> None:
    repairs = [Repair("instead", f"way{n}", "", general=False) for n in range(20)]
    known = book(lesson(*((repair, True) for repair in repairs)))
    assert len(known.entries[0].repairs) == MOST_REPAIRS
    many = [
        lesson(*([(TEST, True)] if n < 9 else []), sign=FailureSign(f"a{n}", "s", "", "x"))
        for n in range(600)
    ]
    known = Book().learned("0", many, 0.0, general=False)
    assert len(known.entries) == MOST_ENTRIES
    assert sum(bool(entry.repairs) for entry in known.entries) == 9


@pytest.mark.parametrize(
    ("worked", "tried", "low"), [(0, 0, 0.0), (1, 1, 0.21), (2, 2, 0.34), (13, 13, 0.77), (5, 10, 0.24)]
)
def test_the_interval_is_wilsons(worked: float, tried: float, low: float) -> None:
    found = wilson(worked, tried)
    assert round(found[0], 2) == low
    assert found[0] <= found[1] <= 1.0
