"""Questions to the operator as text, and the lines that answer them.

A dialogue is a generator: it yields what is said before a line is read (`LinePrompt`), gets the line, and returns the
answer. It reads and writes nothing itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from tui_agent.call_names import of_lane
from tui_agent.core.events import ApprovalAsked, EscalationRaised, ServerAsked
from tui_agent.core.names import POLICIES
from tui_agent.frontend.lines import approval as approval_text
from tui_agent.frontend.lines import escalation as escalation_text
from tui_agent.frontend.lines import server_question as server_text
from tui_agent.frontend.lines.passages import Choice, Passage, Row, blanks_said, is_plain
from tui_agent.runtime.operator import ApprovalReply, EscalationReply, ServerReply
from tui_agent.session.fork import DROP, ForkChoice, fork_choice
from tui_agent.session.fork_point import ForkPoint
from tui_agent.terminal_text import one_line, reveal

Answer = TypeVar("Answer")
INDENT = "  "


class LinePrompt(NamedTuple):
    """Lines to print before the next line is read."""

    lines: tuple[str, ...] = ()
    draft: str = ""
    """Stands in the line to begin with, if lines can be edited."""
    literal: bool = False
    """The line is a value, whatever it begins with."""
    why: int = 0
    """Event that is explained first."""


Dialogue = Generator[LinePrompt, str, Answer]


def shown(passages: Iterable[Passage]) -> list[str]:
    """The passages of a card as lines: whole, with nothing hidden."""
    return [
        " " * passage.indent + line
        for passage in passages
        for line in blanks_said(reveal(passage.text)).split("\n")
    ]


def indented(lines: Iterable[str]) -> list[str]:
    return [INDENT + line for line in lines]


# --- approvals -----------------------------------------------------------------------------------------------


def approval(asked: ApprovalAsked) -> Dialogue[ApprovalReply]:
    """The question for a call's approval. Only one of the words that are offered is an answer."""
    if asked.held:
        return (yield from _held(asked))
    question = [
        of_lane(f"Allow {reveal(asked.tool)}?", asked.lane),
        *indented(shown(approval_text.subject(asked.preview, asked.input))),
        *indented(map(_in_ascii, shown(approval_text.about(asked)))),
    ]
    offers, offer = (asked.rules, *asked.others), 0
    lasting: dict[str, Literal["session", "always", "everywhere"]] = (
        {"a": "session", "w": "always", "g": "everywhere"} if asked.rules else {}
    )
    line = yield LinePrompt((*question, _ways(asked, offers[offer])))
    while True:
        word, _, rest = line.strip().partition(" ")
        word = word.lower()
        said: tuple[str, ...] = ()
        if word in {"n", "no"}:
            return ApprovalReply("deny", reason=rest.strip())
        if rest or word not in {"y", "yes", "e", "c", "?", "", *lasting}:
            said = ("This does not answer the question; nothing was done.",)
        elif word in {"y", "yes"}:
            return ApprovalReply("once")
        elif word in lasting:
            return ApprovalReply(lasting[word], rules=offers[offer] if offer else ())
        elif word == "e":
            edited = yield from arguments(asked.input)
            if edited is not None:
                return ApprovalReply("once", input=None if edited == asked.input else edited)
        elif word == "c" and asked.others:
            offer = (offer + 1) % len(offers)
            said = tuple(_small_print(asked, offers[offer], offer))
        elif word == "?":
            said = (*question, *_small_print(asked, offers[offer], offer))
        line = yield LinePrompt((*said, _ways(asked, offers[offer])))


def _held(asked: ApprovalAsked) -> Dialogue[ApprovalReply]:
    """The question if files that a call left may stand. Enter alone takes nothing: it may have been meant for
    something else.
    """
    ways = "t take back (also t REASON), k keep this once, s show."
    question = [
        of_lane(approval_text.held_title(asked.held), asked.lane),
        *indented(shown(approval_text.held_files(asked.held))),
    ]
    line = yield LinePrompt((*question, ways))
    while True:
        word, _, rest = line.strip().partition(" ")
        said: list[str] = []
        match word.lower(), rest.strip():
            case (("t" | "n" | "no"), reason):
                return ApprovalReply("deny", reason=reason)
            case (("k" | "y" | "yes"), ""):
                return ApprovalReply("once")
            case "s", "":
                said = indented(shown(approval_text.held_whole(asked.held)))
            case "?", "":
                said = question
            case "", "":
                pass
            case _:
                said = ["This does not answer the question; nothing was done."]
        line = yield LinePrompt((*said, ways))


def _small_print(asked: ApprovalAsked, rules: Sequence[str], offer: int) -> list[str]:
    """What lasting answers cover, with the rule that is chosen marked."""
    passages = approval_text.small_print(asked, rules, offer)
    return shown(each._replace(text=f"{each.number} {each.text}".strip()) for each in passages)


def _ways(asked: ApprovalAsked, rules: Sequence[str]) -> str:
    """The answers, in the words of the card."""
    named = (f"{choice.key} {reveal(choice.label)}" for choice in approval_text.choices(asked, rules))
    return _in_ascii(f"{' · '.join(named)}. n REASON: no, with a reason; ? reads it again.")


def _in_ascii(text: str) -> str:
    """Write our own signs as every terminal and screen reader has them."""
    return text.replace(" · ", ", ").replace("…", "...")


def arguments(before: Mapping[str, Any]) -> Dialogue[dict[str, Any] | None]:
    """The arguments of a call, one after another; None if they stay as they were."""
    after: dict[str, Any] = {}
    for name, value in before.items():
        after[name] = yield from _value(name, value)
    line = yield LinePrompt(("It runs like this:", *indented(_listed(after)), "y runs it, n goes back."))
    while True:
        match line.strip().lower():
            case "y" | "yes":
                return after
            case "n" | "no":
                return None
        line = yield LinePrompt(("y runs it, n goes back.",))


def _listed(values: Mapping[str, Any]) -> list[str]:
    """Each value whole: text as it is, others as JSON."""
    lines: list[str] = []
    for name, value in values.items():
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        first, *rest = reveal(text).split("\n")
        lines += [f"{one_line(name, 60)}: {first}", *indented(rest)]
    return lines


def _value(name: str, value: object) -> Dialogue[object]:
    name = one_line(name, 60)
    if isinstance(value, str) and is_plain(value) and "\n" in value:
        head = f"{name} has {value.count(chr(10)) + 1} lines:"
        lines = yield from _many_lines((head, *indented(value.split("\n"))))
        return value if lines is None else "\n".join(lines)
    if isinstance(value, str) and is_plain(value):
        ask = LinePrompt(
            (f"{name}: {value}", "The new text; Enter alone keeps it."), draft=value, literal=True
        )
        line = yield ask
        return line or value
    text = json.dumps(value, default=str)
    line = yield LinePrompt(
        (f"{name}, as JSON: {text}", "The new value; Enter alone keeps it."), text, literal=True
    )
    while line.strip():
        try:
            return json.loads(line)
        except (ValueError, RecursionError) as error:
            line = yield LinePrompt(
                (f"That is no JSON value ({error}). Once more; Enter alone keeps it.",), line, literal=True
            )
    return value


def _many_lines(head: tuple[str, ...]) -> Dialogue[list[str] | None]:
    """Lines up to a single full stop; None if that comes first."""
    how = "The new text, line by line; a line with a full stop alone ends it, and keeps the old one if it comes first."
    line = yield LinePrompt((*head, how), literal=True)
    lines: list[str] = []
    while line != ".":
        lines += line.split("\n")
        line = yield LinePrompt(literal=True)
    return lines or None


# --- escalations ---------------------------------------------------------------------------------------------


def escalation(
    asked: EscalationRaised, attempts: Sequence[escalation_text.EarlierFailure], said: str = ""
) -> Dialogue[EscalationReply]:
    """A number, a letter or its words take a choice; any other text is the answer. `said`: what stands above."""
    rule = f" [{one_line(asked.rule)}]" if asked.rule else ""
    choices = escalation_text.choices_for(asked)
    head = f"Question: {escalation_text.title_of(asked).lower()}{rule}."
    letters = {choice.key: place for place, choice in enumerate(choices, 1) if choice.key.isalpha()}
    numbered = [
        f"{number}  {one_line(choice.label, 400)}{f' ({choice.key})' if choice.key in letters else ''}"
        for number, choice in enumerate(choices, 1)
    ]
    how = "A number, letter or its words choose; any other text is your answer, and =5 is the answer 5."
    # What the last call wrote stands right above; "?" reads the whole of it again.
    subject = escalation_text.subject(asked, attempts, "line", plan=asked.question.strip() != said.strip())
    ask = LinePrompt((head, *indented(shown(subject)), *numbered, how))
    while True:
        line = (yield ask).strip()
        by_words = (place for place, one in enumerate(choices, 1) if one.label.casefold() == line.casefold())
        by_letter = letters.get(line.casefold(), 0) or next(by_words, 0)
        number = int(line) if line.isdecimal() and len(line) < 4 else by_letter
        if line == "?":
            ask = LinePrompt(
                (head, *indented(shown(escalation_text.subject(asked, attempts, "whole"))), *numbered, how)
            )
        elif not line or (
            line.isdecimal() and not 1 <= number <= len(choices) and asked.source != "ask_operator"
        ):
            ask = LinePrompt((*numbered, how))
        elif not 1 <= number <= len(choices):
            text = line[1:].strip() if line.startswith("=") else line
            return EscalationReply("retry" if asked.source == "model" else "answer", text)
        else:
            reply = yield from _chosen(asked, choices[number - 1])
            if isinstance(reply, EscalationReply):
                return reply
            ask = reply


def _chosen(asked: EscalationRaised, choice: Choice) -> Dialogue[EscalationReply | LinePrompt]:
    kind, _, rest = choice.value.partition(":")
    match kind:
        case "option":
            return EscalationReply("retry" if asked.source == "model" else "answer", asked.options[int(rest)])
        case "edit":
            edited = yield from arguments(asked.input)
            return (
                LinePrompt(("Not edited. ? reads the question again.",))
                if edited is None
                else EscalationReply("edit", input=edited)
            )
        case "retry" | "wait" | "skip" | "keep" | "fresh_start" | "partial" | "stop":
            return EscalationReply(kind)
        case _:
            return LinePrompt(("? reads the question again.",), why=asked.seq)


# --- tool servers --------------------------------------------------------------------------------------------


def server(asked: ServerAsked) -> Dialogue[ServerReply]:
    """The question if a tool server may start, or its own questions, field by field."""
    name = one_line(asked.server, 40)
    trust = asked.purpose == "trust"
    choices = server_text.TRUST if trust else server_text.OPEN if asked.url else server_text.FORM
    ways = ", ".join(f"{choice.key} {choice.label}" for choice in choices) + "."
    head = f"Start the MCP server {name}?" if trust else f"The MCP server {name} asks."
    line = yield LinePrompt((head, *indented(shown(server_text.subject(asked))), ways))
    while True:
        taken = next((choice.value for choice in choices if choice.key == line.strip().lower()), "")
        match taken:
            case "accept" if asked.fields:
                return ServerReply("accept", (yield from _fields(asked)))
            case "accept" | "decline" | "cancel":
                return ServerReply(taken)
        line = yield LinePrompt((f"This does not answer the question. {ways}",))


def _fields(asked: ServerAsked) -> Dialogue[dict[str, Any]]:
    values: dict[str, Any] = {}
    names = list(asked.fields)
    for place, name in enumerate(names):
        ask = LinePrompt((reveal(server_text.describe(asked, name, place, len(names))),), literal=True)
        while True:
            line = yield ask
            try:
                value = server_text.read_value(asked, name, line)
            except server_text.FieldError as error:
                ask = LinePrompt((reveal(str(error)),), literal=True)
                continue
            if value is not None:
                values[name] = value
            break
    return values


# --- what commands ask ---------------------------------------------------------------------------------------


def pick(
    title: str, rows: Sequence[Row], written: Callable[[str], Row | None] = lambda _: None
) -> Dialogue[Any]:
    """The value of one of the rows, or of the row that `written` makes of the line; None: none was chosen."""
    said = (f"{one_line(row.text, 200)}  {one_line(row.about, 200)}".rstrip() for row in rows)
    how = "A number chooses; Enter alone leaves it."
    ask = LinePrompt((f"{title}:", *(f"{number}  {text}" for number, text in enumerate(said, 1)), how))
    while line := (yield ask).strip():
        if line.isdecimal() and len(line) < 6 and 1 <= int(line) <= len(rows):
            return rows[int(line) - 1].value
        if (row := written(line)) is not None:
            return row.value
        ask = LinePrompt((f"There is no {one_line(line, 40)} in the list. {how}",))
    return None


def confirm(lines: Iterable[str], yes: str) -> Dialogue[bool]:
    """`yes`: what y does."""
    ways = f"y {yes}, n leaves it as it is."
    ask = LinePrompt((*lines, ways))
    while True:
        match (yield ask).strip().lower():
            case "y" | "yes":
                return True
            case "n" | "no" | "":
                return False
        ask = LinePrompt((ways,))


def fork(point: ForkPoint, changed: Sequence[str] = ()) -> Dialogue[ForkChoice | None]:
    """The event that a fork begins with, and its change; None: no fork is made. `changed`: files that were
    different then.
    """
    step = f", step {point.iteration}" if point.iteration else ""
    head = f"Fork after event {point.seq} of {point.total}{step}. This session stays as it is."
    answerable = point.question is not None or point.open
    could = {"policy": True, "model": True, "answer": answerable, "note": point.open, "files": bool(changed)}
    things = ", ".join(name for name, able in could.items() if able)
    ways = f"Enter forks it as it is, c changes something first ({things}), n leaves it."
    ask = LinePrompt((head, ways))
    while (word := (yield ask).strip().lower()) not in {"", "y", "yes", "c"}:
        if word in {"n", "no"}:
            return None
        ask = LinePrompt((ways,))
    if word != "c":
        return fork_choice(point)
    now = point.policy or "as configured"
    ask = LinePrompt((f"Policy ({', '.join(POLICIES)}); Enter alone: {now}, as it is.",))
    while (policy := (yield ask).strip()) not in {"", *POLICIES}:
        ask = LinePrompt((f"There is no policy {one_line(policy, 40)}. There are {', '.join(POLICIES)}.",))
    model = yield LinePrompt(
        (f"Model; Enter alone: {one_line(point.model) or 'as configured'}.",), literal=True
    )
    answer = note = ""
    if point.question is not None:
        was = "it stays open" if point.answer is None else f"as it was: {one_line(point.answer, 200)}"
        question = indented(reveal(point.question).split("\n"))
        answer = yield LinePrompt(("Your answer to:", *question, f"Enter alone: {was}."), literal=True)
    elif point.open:
        answer = yield LinePrompt(("A message to the agent; Enter alone: none.",), literal=True)
    if point.open:
        before = () if point.note is None else ("The note:", *indented(reveal(point.note).split("\n")))
        way = "none" if point.note is None else f"as it is, {DROP} sends none"
        note = yield LinePrompt(
            (*before, f"Recovery note with the next model call; Enter alone: {way}."), literal=True
        )
    files = bool(changed) and (
        yield from confirm(
            [f"Files that were otherwise then: {one_line(', '.join(changed), 400)}"], "brings them back"
        )
    )
    return fork_choice(
        point, policy=policy, model=model.strip(), answer=answer.strip(), note=note.strip(), files=files
    )
