"""Answers typed at cards, in words and bursts, with pauses, pastes and repeated keys: all arrive as meant.

One small app holds the cards, so that an answer costs its keys alone. What a person means is worked out here by the one
rule that a card shows: a choice's key and Enter take the choice; all else is text.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.events import Key, Paste

from tests.console.waiting import until
from tui_agent.console.cards.answer_field import AnswerField
from tui_agent.console.cards.approval import ApprovalCard
from tui_agent.console.cards.card import Card
from tui_agent.console.cards.choices import Choices
from tui_agent.console.cards.escalation import EscalationCard
from tui_agent.console.looks.themes import read_themes, theme_folders
from tui_agent.console.prompt.fields import LineField
from tui_agent.core.events import ApprovalAsked, EscalationRaised
from tui_agent.frontend.lines.approval import choices as choices_of
from tui_agent.frontend.lines.escalation import choices_for
from tui_agent.frontend.operator import ApprovalQuestion, EscalationQuestion

WORDS: tuple[str, ...] = (
    *(
        "read",
        "pyproject",
        "instead",
        "skip",
        "the cache",
        "and",
        "retry",
        "once",
        "please",
        "x",
        "p",
        "r",
        "s",
        "e",
    ),
    *(
        "w",
        "t",
        "u",
        "1",
        "2",
        "3",
        "20",
        "wait",
        "until",
        "noon",
        "yes",
        "no",
        "why",
        "stop",
        "edit",
        "go on",
        "c",
    ),
    *(
        "also",
        "while",
        "use",
        "uv run",
        "pytest -x",
        "/tmp/a.py",
        "Tabelle",
        "größer",
        "数",
        "résumé",
        "n",
        "no limit",
        "👩\u200d💻",
        "a\u200bb",
    ),
)
ASKED: dict[str, dict[str, Any]] = {
    "a failing call": {"source": "attempts", "tool": "read_file", "input": {"path": "a.py"}},
    "a question": {"source": "ask_operator", "options": ("tabs", "spaces", "20")},
    "a limit": {"source": "model", "options": ("openai/one",), "until": 5_000.0},
    "a budget": {"source": "budget", "options": ("go on, up to 2.00 USD", "without this limit")},
    "a plan": {"source": "plan", "options": ("carry it out", "carry it out, edits run")},
    "the steps": {"source": "steps", "options": ("50 more", "no limit")},
}
ANSWERS = [20, pytest.param(80, marks=pytest.mark.slow)]
"""How many are typed at each card: with all kinds of questions, hundreds."""

BURST = 3
"""Of so many answers one comes all at once; else the screen settles up to so often between its keys."""


class Desk(App[None]):
    """A card, and what it gave: replies, and text that was meant for the prompt."""

    def __init__(self, make: Any) -> None:
        super().__init__()
        self._make = make
        self.replies: list[Any] = []
        self.prompted = ""
        self.card: Card

    def compose(self) -> ComposeResult:
        self.register_theme(read_themes(theme_folders())[0]["agent-dark"])
        self.theme = "agent-dark"
        self.card = self._make()
        self.card.stood_quiet = lambda: False
        self.card.arm()
        yield self.card
        yield LineField(id="prompt")

    def on_card_settled(self, event: Card.Settled) -> None:
        self.replies.append(event.answer)

    def on_card_typed_on(self, event: Card.TypedOn) -> None:
        self.prompted += event.text
        self.query_one("#prompt").focus()

    def send(self, keys: list[str | Paste]) -> None:
        for key in keys:
            named = {" ": "space", "\r": "enter"}
            self.post_message(
                key if isinstance(key, Paste) else Key(named.get(key, key), key)  # as the terminal sends them
            )


def typed(chance: random.Random) -> list[str | Paste]:
    """What a person types before Enter: words, a repeated key, pastes among them."""
    kind = chance.random()
    if kind < 0.2:
        return [chance.choice("rsepxwt123uyagcn")]
    if kind < 0.3:
        return [chance.choice("rsepxw12")] * chance.randint(2, 6)
    keys: list[str | Paste] = list(" ".join(chance.choices(WORDS, k=chance.randint(1, 3))))
    if kind < 0.4:
        keys.insert(
            chance.randint(0, 1), Paste(chance.choice(("r", "look\nhere", "p", "of it", "\ufeffof\u200b it")))
        )
    return keys


def chunks(keys: list[str | Paste], chance: random.Random) -> Iterator[list[str | Paste]]:
    """The keys as they come between two moments at which the screen has settled: a person may pause anywhere."""
    pauses = 0 if chance.random() < 1 / BURST else chance.randint(1, BURST)
    places = sorted({0, *(chance.randint(0, len(keys)) for _ in range(pauses))})
    for begin, end in zip(places, [*places[1:], len(keys)], strict=True):
        yield keys[begin:end]


def text_of(keys: list[str | Paste]) -> str:
    return "".join(key.text if isinstance(key, Paste) else key for key in keys)


@pytest.mark.parametrize("answers", ANSWERS)
@pytest.mark.parametrize("begins", ["in the answer", "among the choices"])
@pytest.mark.parametrize("about", ASKED)
async def test_no_answer_is_lost_changed_or_misread(about: str, begins: str, answers: int) -> None:
    asked = EscalationRaised(id="e", question="Why?", **ASKED[about])
    meant = {choice.key: choice.value for choice in choices_for(asked)}
    chance = random.Random(f"{about} {begins}")
    desk = Desk(lambda: EscalationCard(EscalationQuestion(asked), []))
    async with desk.run_test() as pilot:
        field, choices = desk.card.query_one(AnswerField), desk.card.query_one(Choices)
        for _ in range(answers):
            keys = typed(chance)
            first, choice = text_of(keys), meant.get(keys[0] if isinstance(keys[0], str) else "")
            taken = choice if len(keys) == 1 else None
            if taken in {"why", "edit"} or not first.strip():
                continue
            desk.card.remove_class("-answering")
            if not (place := field if begins == "in the answer" else choices).has_focus:
                place.focus()
                await pilot.pause()
            for some in chunks(keys, chance):
                desk.send(some)
                await pilot.pause()
            if begins == "among the choices" and taken is None:
                await until(pilot, lambda first=first: field.value == first)
            before = len(desk.replies)
            desk.send(["\r"])
            await until(pilot, lambda before=before: len(desk.replies) > before)
            (reply,) = desk.replies[before:]
            expected = ("answer", first.strip()) if taken is None else (taken.partition(":")[0], "")
            if expected[0] == "option":
                expected = ("answer", asked.options[int(str(taken).partition(":")[2])])
            assert (reply.choice, reply.text) == expected, keys
            field.value = ""


@pytest.mark.parametrize("answers", ANSWERS)
async def test_a_message_that_is_typed_at_an_approval_reaches_the_prompt_whole_and_answers_nothing(
    answers: int,
) -> None:
    asked = ApprovalAsked(
        id="a", call_id="c", tool="bash", input={"command": "make"}, preview="make", rules=("bash(make)",)
    )
    meant = {choice.key: choice.value for choice in choices_of(asked, asked.rules)}
    chance = random.Random("approvals")
    desk = Desk(lambda: ApprovalCard(ApprovalQuestion(asked)))
    async with desk.run_test() as pilot:
        prompt, choices = desk.query_one("#prompt", LineField), desk.card.query_one(Choices)
        for _ in range(2 * answers):
            keys = typed(chance)
            if len(keys) == 1 and keys[0] in meant:
                continue
            choices.focus()
            await pilot.pause()
            for some in chunks(keys, chance):
                desk.send(some)
                await pilot.pause()
            first = text_of(keys)
            await until(
                pilot,
                lambda first=first: (desk.prompted + prompt.whole_text).split() == first.split(),
            )
            assert desk.replies == []
            desk.prompted = prompt.value = ""


@pytest.mark.parametrize("answers", ANSWERS)
async def test_a_burst_behind_a_yes_or_no_that_acts_at_once_arrives_whole(answers: int) -> None:
    asked = ApprovalAsked(
        id="a", call_id="c", tool="bash", input={"command": "make"}, preview="make", rules=("bash(make)",)
    )
    chance = random.Random("bursts")
    desk = Desk(lambda: ApprovalCard(ApprovalQuestion(asked)))
    async with desk.run_test() as pilot:
        prompt, choices = desk.query_one("#prompt", LineField), desk.card.query_one(Choices)
        field = desk.card.query_one(AnswerField)
        desk.card.stood_quiet = lambda: True
        desk.card.fit(24, 80)  # all of the subject is in sight
        await pilot.pause()
        said = ["no, use pip", "nyet", "nn", "never yes", "yes", "yn", "yy, go on"]
        said += [chance.choice("yn") + text_of(typed(chance)) for _ in range(answers)]
        for text in said:
            prompt.focus()
            await pilot.pause()
            choices.focus()
            await pilot.pause()
            for some in chunks(list(text), chance):
                desk.send(some)
                await pilot.pause()
            if text.startswith("n"):
                await until(pilot, lambda text=text: field.whole_text.split() == text.split())
                assert desk.replies == []
                desk.send(["\r"])
                await until(pilot, lambda: desk.replies)
                assert (desk.replies[0].decision, desk.replies[0].reason.split()) == ("deny", text.split())
                field.value = ""
                desk.card.remove_class("-denying")
            else:
                await until(
                    pilot,
                    lambda text=text: (desk.prompted + prompt.whole_text).split() == text[1:].split(),
                )
                assert [reply.decision for reply in desk.replies] == ["once"]
            desk.replies.clear()
            desk.prompted = prompt.value = ""


async def test_at_any_speed_no_is_the_first_letter_of_its_reason_and_all_else_is_a_message() -> None:
    """By a clock that only the test turns: at 10 words a minute every letter comes after a second of quiet."""
    asked = ApprovalAsked(
        id="a", call_id="c", tool="bash", input={"command": "make"}, preview="make", rules=("bash(make)",)
    )
    chance = random.Random("speeds")
    desk = Desk(lambda: ApprovalCard(ApprovalQuestion(asked)))
    async with desk.run_test() as pilot:
        prompt, choices = desk.query_one("#prompt", LineField), desk.card.query_one(Choices)
        field = desk.card.query_one(AnswerField)
        for number in range(60):
            speed = (10, 20, 40, 80, 120)[number % 5]
            text = " ".join(
                (
                    chance.choice(("no", "not", "never", "next time", "read", "use")),
                    *chance.choices(WORDS, k=2),
                )
            )
            choices.focus()
            await pilot.pause()
            waited = chance.choice((0.1, 1.0, 3.0))
            for letter in text:
                desk.card.stood_quiet = lambda waited=waited: waited >= 1.0
                desk.send([letter])
                await pilot.pause()
                waited = 60 / (5 * speed) + chance.choice((0.0, 0.0, 0.1, 1.0, 3.0))
            if not desk.card.has_class("-denying"):
                await until(pilot, lambda text=text: desk.prompted + prompt.whole_text == text)
                assert desk.replies == []
            else:
                await until(pilot, lambda text=text: field.value == text)
                desk.send(["\r"])
                await until(pilot, lambda: desk.replies)
                assert text.startswith("n")
                assert (desk.replies[0].decision, desk.replies[0].reason) == ("deny", text)
                field.value = ""
                desk.card.remove_class("-denying")
            desk.replies.clear()
            desk.prompted = prompt.value = ""
