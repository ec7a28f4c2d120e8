"""What is asked in lines, and which lines answer it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from tui_agent.core.events import ApprovalAsked, EscalationRaised, HeldFile, ServerAsked
from tui_agent.frontend.lines.escalation import EarlierFailure
from tui_agent.plain import dialogues
from tui_agent.plain.dialogues import LinePrompt
from tui_agent.runtime.operator import ApprovalReply, EscalationReply, ServerReply
from tui_agent.session.fork import ForkChoice
from tui_agent.session.fork_point import ForkPoint
from tui_agent.session.forked_journal import WhatIf

COMMAND = "make all\nrm -rf build"
HOSTILE = "make all && " + "x" * 300 + "\n\x1b[2Krm -rf build"


def held(dialogue: Generator[LinePrompt, str, Any], *lines: str) -> tuple[Any, list[str]]:
    """The answer after these lines (None: it still asks), and everything that was said."""
    said = list(next(dialogue).lines)
    for line in lines:
        try:
            said += dialogue.send(line).lines
        except StopIteration as done:
            return done.value, said
    return None, said


def asked(**changes: Any) -> ApprovalAsked:
    values = {"id": "a", "call_id": "c", "tool": "bash", "input": {"command": COMMAND}, "preview": COMMAND}
    values |= {"rules": ("bash(make *)",), "others": (("bash(make)",),), "covers": "make and what follows"}
    return ApprovalAsked(
        **{
            **values,
            "rules": ("bash(make *)",),
            "others": (("bash(make)",),),
            "covers": "make and what follows",
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        (["y"], ApprovalReply("once")),
        ([" YES "], ApprovalReply("once")),
        (["a"], ApprovalReply("session")),
        (["w"], ApprovalReply("always")),
        (["c", "g"], ApprovalReply("everywhere", rules=("bash(make)",))),
        (["c", "c", "a"], ApprovalReply("session")),
        (["n"], ApprovalReply("deny")),
        (["n use make -n first"], ApprovalReply("deny", "use make -n first")),
        (["yes please", "", "why not", "?", "y"], ApprovalReply("once")),
        (["yy"], None),
        (["e", "", ".", "n", "y"], ApprovalReply("once")),
        (
            ["e", "echo one", "echo two", ".", "y"],
            ApprovalReply("once", input={"command": "echo one\necho two"}),
        ),
    ],
)
def test_only_an_offered_word_answers_an_approval(lines: list[str], answer: ApprovalReply | None) -> None:
    assert held(dialogues.approval(asked()), *lines)[0] == answer


def test_an_approval_shows_the_whole_call_with_nothing_hidden_and_what_cannot_be_remembered_is_not_offered() -> (
    None
):
    hostile = asked(input={"command": HOSTILE}, preview=HOSTILE)
    said = "\n".join(held(dialogues.approval(hostile), "?")[1])
    assert "x" * 300 in said
    assert "␛[2Krm -rf build" in said
    assert "\x1b" not in said
    assert "make and what follows" in said
    answer, said_again = held(
        dialogues.approval(asked(rules=(), others=(), covers="", why="a rule asks")), "a", "w"
    )
    assert answer is None
    assert "a rule asks" in "\n".join(said_again)


def test_values_that_are_no_text_are_edited_as_json() -> None:
    dialogue = dialogues.approval(asked(input={"path": "a.py", "replace_all": False}, preview=""))
    answer, said = held(dialogue, "e", "b.py", "maybe", "true", "y")
    assert answer == ApprovalReply("once", input={"path": "b.py", "replace_all": True})
    assert any("no JSON value" in line for line in said)


@pytest.mark.parametrize(
    ("source", "lines", "answer"),
    [
        ("attempts", ["2", "echo 2", "y"], EscalationReply("edit", input={"command": "echo 2"})),
        ("attempts", ["1"], EscalationReply("retry")),
        ("attempts", ["17", "try another way"], EscalationReply("answer", "try another way")),
        ("attempts", ["", "6"], EscalationReply("stop")),
        ("attempts", ["4"], EscalationReply("fresh_start")),
        ("attempts", ["Retry once"], EscalationReply("retry")),
        ("attempts", ["edit and retry", "echo 2", "y"], EscalationReply("edit", input={"command": "echo 2"})),
        ("attempts", ["=stop"], EscalationReply("answer", "stop")),
        ("ask_operator", ["2"], EscalationReply("answer", "9090")),
        ("ask_operator", ["8123"], EscalationReply("answer", "8123")),
        ("ask_operator", ["=2"], EscalationReply("answer", "2")),
        ("model", ["openai/other"], EscalationReply("retry", "openai/other")),
    ],
)
def test_a_number_or_its_words_choose_and_other_text_is_the_answer(
    source: str, lines: list[str], answer: EscalationReply
) -> None:
    options = ("8080", "9090") if source == "ask_operator" else ()
    raised = EscalationRaised(
        id="e",
        question="Which port?",
        source=source,
        tool="bash",
        input={"command": "echo 1"},
        options=options,
    )
    assert held(dialogues.escalation(raised, ()), *lines)[0] == answer


def test_the_reason_can_be_asked_for_before_the_answer() -> None:
    raised = EscalationRaised(id="e", question="Help?", source="attempts", tool="bash", input={}, seq=12)
    dialogue = dialogues.escalation(raised, ())
    choices = [line.split("  ")[0] for line in next(dialogue).lines if line.endswith("why? (w)")]
    assert dialogue.send(choices[0]).why == 12


def test_an_error_that_stands_above_is_not_read_out_again_with_the_question() -> None:
    error = "The command failed with exit code 1.\nTraceback:\n  line 3\nKeyError: 'price'"
    raised = EscalationRaised(
        id="e", question="Help?", source="attempts", tool="bash", input={"command": "a"}
    )
    dialogue = dialogues.escalation(raised, [EarlierFailure("step 1", error)])
    asked = [line.strip() for line in next(dialogue).lines]
    assert "KeyError: 'price'" in asked
    assert "line 3" not in asked
    assert "line 3" in [line.strip() for line in dialogue.send("?").lines]


def test_a_plan_that_stands_above_is_not_read_out_again_and_can_be_kept() -> None:
    plan = EscalationRaised(id="p", question="# A plan", source="plan", options=("carry it out",))
    for said, repeats in (("# A plan", False), ("", True)):
        reply, read = held(dialogues.escalation(plan, [], said), "s")
        assert reply == EscalationReply("keep")
        assert ("# A plan" in "\n".join(read)) == repeats


def test_a_server_is_answered_field_by_field() -> None:
    form = ServerAsked(
        id="s",
        server="db",
        purpose="elicitation",
        message="Which one?",
        fields={"port": {"type": "integer"}, "name": {"type": "string"}},
        required=("port",),
    )
    assert held(dialogues.server(form), "y", "many", "5432", "")[0] == ServerReply("accept", {"port": 5432})
    trust = ServerAsked(id="s", server="db", purpose="trust", message="runs: db --serve")
    assert held(dialogues.server(trust), "yes", "l")[0] == ServerReply("cancel")


RUNNING = ForkPoint(
    9, 12, 0.0, "note_prepared", 3, "combined", "openai/m", open=True, question="Which port?", answer="80",
    answer_seq=7, note="Try another way.",
)  # fmt: skip


@pytest.mark.parametrize(("word", "wanted"), [("y", True), ("n", False)])
def test_a_fork_brings_files_back_where_that_is_wanted(word: str, wanted: bool) -> None:
    point = ForkPoint(5, 9, 0.0, "run_finished", policy="hpd")
    given, said = held(dialogues.fork(point, ["a.py", "b.py"]), "c", "", "", word)
    assert given == ForkChoice(5, WhatIf(), files=wanted)
    assert "Files that were otherwise then: a.py, b.py" in said


@pytest.mark.parametrize(
    ("point", "lines", "answer"),
    [
        (RUNNING, [""], ForkChoice(9, WhatIf())),
        (RUNNING, ["what?", "n"], None),
        (RUNNING, ["c", "", "", "", ""], ForkChoice(9, WhatIf())),
        (RUNNING, ["c", "nonsense", "gigi", "m", "", "drop"], ForkChoice(9, WhatIf("gigi", "m", note=""))),
        (RUNNING, ["c", "combined", "", "/8080", "Look."], ForkChoice(7, WhatIf(answer="/8080", note="Look."))),
        (ForkPoint(5, 5, 0.0, "run_finished", policy="hpd"), ["c", "forge", ""], ForkChoice(5, WhatIf("forge"))),
    ],
)  # fmt: skip
def test_a_fork_goes_as_it_went_but_for_what_is_entered(
    point: ForkPoint, lines: list[str], answer: ForkChoice | None
) -> None:
    given, said = held(dialogues.fork(point), *lines)
    assert given == answer
    assert "This session stays as it is." in said[0]
    if len(lines) > 3:
        assert "There is no policy nonsense" in "".join(said) or "nonsense" not in lines
        assert "  Which port?" in said
        assert "  Try another way." in said


def left(**changes: Any) -> ApprovalAsked:
    files = (
        HeldFile(
            path=".githooks/pre-commit",
            why="git runs it (core.hookspath in ~/.gitconfig)",
            number=2,
            line="touch MARKER",
            text="#!/bin/sh\n\x1b[2Kwhole",
        ),
        HeldFile(path="a\x1b[2K.envrc", why="direnv obeys it by itself", number=1, line="evil"),
    )
    return asked(rules=(), others=(), held=files, **changes)


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        (["k"], ApprovalReply("once")),
        (["Yes"], ApprovalReply("once")),
        (["t"], ApprovalReply("deny")),
        (["n"], ApprovalReply("deny")),
        (["t not in this project"], ApprovalReply("deny", "not in this project")),
        (["s", "?", "", "k"], ApprovalReply("once")),
        (["keep", "k please", "a", "w", "e", "kk"], None),
    ],
)
def test_only_an_offered_word_lets_stand_what_a_command_left(
    lines: list[str], answer: ApprovalReply | None
) -> None:
    assert held(dialogues.approval(left()), *lines)[0] == answer


def test_what_a_command_left_is_shown_with_who_runs_it_and_whole_where_that_is_asked_for() -> None:
    first = "\n".join(held(dialogues.approval(left()))[1])
    row = ".githooks/pre-commit · git runs it (core.hookspath in ~/.gitconfig) · line 2: touch MARKER"
    assert row in first
    assert "Keep 2 files that the command left?" in first
    assert "whole" not in first
    whole = "\n".join(held(dialogues.approval(left()), "s")[1])
    assert "whole" in whole
    assert "\x1b" not in whole
