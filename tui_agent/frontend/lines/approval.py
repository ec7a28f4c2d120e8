"""The subject of an approval, in words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tui_agent.core.tool_facts import COMMAND_TOOL
from tui_agent.frontend.lines.glyphs import EMPTY, FULL
from tui_agent.frontend.lines.passages import GAP, Choice, Passage, diff_passages, numbered
from tui_agent.permissions.offers import THIS_COMMAND, called, examples, in_short, rules_in_words
from tui_agent.terminal_text import one_line, revealed_line

if TYPE_CHECKING:
    from tui_agent.core.events import ApprovalAsked, HeldFile

KEEP = (
    Choice("t", "take back", "deny"),
    Choice("k", "keep (this once)", "once"),
    Choice("s", "show", "show"),
)
"""Choices for files that a command left; the first holds if nothing else is chosen."""


def held_title(held: Sequence[HeldFile]) -> str:
    """The question about them."""
    return (
        "Keep what the command left?" if len(held) == 1 else f"Keep {len(held)} files that the command left?"
    )


def held_files(held: Sequence[HeldFile]) -> Iterable[Passage]:
    """Each file with the program that would run it, and the first line of it that is new."""
    for file in held:
        line = f" · line {file.number}: {one_line(file.line, 160)}" if file.line else ""
        yield Passage(f"{one_line(file.path, 200)} · {one_line(file.why, 200)}{line}", "code")
    what = "It is" if len(held) == 1 else "They are"
    yield Passage(f"{what} out of the way until you answer; no answer takes back.", "muted")


def held_whole(held: Sequence[HeldFile]) -> Iterable[Passage]:
    """Each of them from its first line to its last, with the numbers of its lines."""
    for file in held:
        yield Passage(f"{one_line(file.path, 200)}:", "bold")
        yield from numbered(file.text.removesuffix("\n"), always=True)


_ROLES = {
    "danger": "bold error",
    "unread": "warn",
    "deletes": "error",
    "replaces": "warn",
    "network": "warn",
    "outside": "warn",
}
_SAID = {
    "danger": "DANGER: it {}",
    "unread": "{}",
    "deletes": "deletes: {}",
    "replaces": "writes over: {}",
    "network": "network: {}",
    "outside": "outside of this folder: {}",
}
_LONGEST_WHY = 400
"""Characters of the reason why a call is asked about."""
_LONGEST_RULE = 60
"""Characters of the name of a choice's rules, beyond which they are read behind `?`."""


def about(asked: ApprovalAsked) -> Iterable[Passage]:
    """Say in which place the call happens, what it reaches, and why it is asked about if that is more than the mode."""
    where = f"in {asked.place}" if asked.place else ""
    limit = _behind_command(asked.preview, asked.input).strip("()").removeprefix("for ")
    if where or limit:
        yield Passage(revealed_line(" · ".join(filter(None, (where, limit)))), "muted")
    for one in asked.reaches:
        yield Passage(_SAID[one.kind].format(revealed_line(one.text)), _ROLES[one.kind])
    if asked.place and not asked.reaches and asked.tool == COMMAND_TOOL:
        yield Passage("its words name nothing outside of this folder", "muted")
    if asked.why and not asked.why.startswith(_BY_MODE):
        yield Passage(f"asks because: {one_line(asked.why, _LONGEST_WHY)}", "warn")


_BY_MODE = "--approve "


def is_dangerous(asked: ApprovalAsked) -> bool:
    """Tell if the card of a call warns by its frame."""
    return any(one.kind == "danger" for one in asked.reaches)


def choices(asked: ApprovalAsked, rules: Sequence[str]) -> Iterable[Choice]:
    """List the ways to answer; `rules` are those that the lasting ones leave behind, () for none. The rarer ones come
    last, and are left out if there is no room for them.
    """
    yield Choice("y", "once", "once")
    if rules:
        name = called(rules)
        short = name if len(name) <= _LONGEST_RULE else f"{name[:_LONGEST_RULE]}…"
        till = f"{short} till the end of the session"
        here = "this session" if name == THIS_COMMAND else f"{short} this session"
        yield Choice("a", till, "session", lasting=True, short=here)
        yield Choice("w", "… in this folder for good", "always", lasting=True, short="for good")
        yield Choice("n", "no", "deny")
        yield Choice("?", "more", "more")
        yield Choice("e", "edit", "edit", rare=True)
        yield Choice("g", "… everywhere", "everywhere", lasting=True, rare=True)
        yield from [Choice("c", "other rule", "other", rare=True)] if asked.others else []
        return
    yield Choice("n", "no", "deny")
    yield Choice("e", "edit", "edit")
    yield from [Choice("?", "more", "more")] if asked.why.startswith(_BY_MODE) else []


def small_print(asked: ApprovalAsked, rules: Sequence[str], number: int) -> Iterable[Passage]:
    """Say what the lasting choices cover and what they do not. `number`: of the rules, the first ones are asked for."""
    if asked.why.startswith(_BY_MODE):
        yield Passage(f"asks because: {one_line(asked.why, _LONGEST_WHY)}", "muted")
    offers = (asked.rules, *asked.others) if asked.rules else ()
    for place, each in enumerate(offers):
        role = "warn" if COMMAND_TOOL in each else "muted"
        if place != number:
            yield Passage(in_short(each), "muted", number=EMPTY)
            continue
        covers = rules_in_words(each) if place else asked.covers
        yield Passage(f"a, w and g allow {covers}", role, number=FULL if asked.others else "")
        such, never = examples(each, asked.input)
        yield Passage(f"such as {such}; not {never}", role, indent=2)
    if offers:
        more = " · c chooses another rule" if asked.others else ""
        yield Passage(
            f"a until the session ends, w in this folder for good, g in every folder{more} · e edits the call first",
            "muted",
        )


def subject(preview: str, arguments: Mapping[str, Any]) -> Iterable[Passage]:
    """The preview, then every argument that it does not show in full: text as text, line by line."""
    command = arguments.get("command")
    if isinstance(command, str) and command and preview.startswith(command):
        yield from numbered(command)
    elif preview:
        yield from diff_passages(preview.rstrip("\n"))
    hidden = {name: value for name, value in arguments.items() if not _shown(value, preview)}
    if hidden and preview:
        yield GAP
    for name, value in hidden.items():
        label = one_line(name, 60)
        text = (
            value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, default=str)
        )
        if "\n" in text:
            yield Passage(f"{label}:", "bold")
            yield from numbered(text)
        else:
            yield Passage(f"{label}: {text}", "code", verbatim=True)
    if not hidden and not preview:
        yield Passage("No arguments.", "muted")


def _behind_command(preview: str, arguments: Mapping[str, Any]) -> str:
    """Give what a preview says of a command behind its words: how long it may run."""
    command = arguments.get("command")
    if isinstance(command, str) and command and preview.startswith(command):
        return preview[len(command) :].strip("\n")
    return ""


def _shown(value: object, preview: str) -> bool:
    """True if every line of `value` stands in the preview: as it is, or as a line of a diff."""
    if not preview or not isinstance(value, str | int | float):
        return False
    text = str(value)
    if text in preview:
        return True
    lines = {line[1:] for line in preview.split("\n")}
    return all(line in lines for line in text.split("\n") if line)
