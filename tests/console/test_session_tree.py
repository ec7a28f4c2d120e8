"""Which sessions the browser lists, and how forks stand below their parents."""

from __future__ import annotations

from tui_agent.console.screens.session_tree import entries
from tui_agent.console.screens.sessions import SessionList, about
from tui_agent.core.evolve import evolve
from tui_agent.frontend.lines.styled import text_of
from tui_agent.store.session_index import Hit
from tui_agent.store.summary import SessionRow


def row(name: str, parent: str = "", title: str = "") -> SessionRow:
    return SessionRow(name, title=title or f"Title of {name}", parent=parent, parent_seq=9 if parent else 0)


ROWS = [
    row("d", "b"),
    row("x", title="Alone"),
    row("c", "a"),
    row("b", "a"),
    row("a"),
    row("e", "gone"),
    row("p", "q"),
    row("q", "p"),
]
"""The newest first; p and q name each other."""


def drawn(words: str = "", *hits: str) -> list[str]:
    found = [Hit(name, "", 3, "model", "text", ()) for name in hits]
    return [entry.branch + entry.row.id for entry in entries(ROWS, words, found)]


def test_forks_stand_below_their_parents_where_the_newest_of_them_would() -> None:
    assert drawn() == ["a", "├ c", "└ b", "  └ d", "x", "e", "q", "└ p"]


def test_what_was_typed_is_looked_for_in_titles_and_in_what_was_said() -> None:
    assert drawn("alone") == ["x"]
    assert drawn("nothing", "d", "x") == ["d", "x"]
    assert drawn("TITLE of", "x") == ["a", "├ c", "└ b", "  └ d", "x", "e", "q", "└ p"]
    assert drawn("title alone") == []


def test_a_long_line_of_forks_has_a_bounded_indent() -> None:
    chain = [row(str(number), str(number - 1)) for number in range(3_000, 0, -1)]
    found = entries([*chain, row("0")], "", ())
    assert len(found) == 3_001
    assert max(len(entry.branch) for entry in found) == 14


def test_a_damaged_session_says_so_and_why_and_claims_nothing_else() -> None:
    problem = "events.jsonl is damaged in line 4: no JSON."
    damaged = evolve(row("d"), problem=problem, outcome="answered", runs=1, events=3)
    unreadable = SessionRow("u", problem="events.jsonl holds no session: the file is empty.")
    for each, named in ((damaged, "Title of d"), (unreadable, "u")):
        (entry,) = entries([each], "", ())
        drawn = text_of(SessionList(frozenset()).draw_row(entry, 60, current=False))
        assert drawn.rstrip().endswith(f" ✗ damaged      {named}")
        assert about(each, "", 2).split("\n")[1] == each.problem
