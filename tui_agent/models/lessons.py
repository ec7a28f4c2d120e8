"""Lessons from the errors of a model server about its habits, and the tries of one call to meet them.

The wordings are those of real servers; a lesson is tried once and kept only if the request then succeeds. Two
things never happen: the same request twice, and more than `MOST_TRIES` requests for one call.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from tui_agent.models import refusal_words as said
from tui_agent.models.habits import Content, Habits, Reasoning
from tui_agent.models.images import refuses_images

MOST_TRIES = 12
"""Requests that one call may add to its first."""
LONGEST_WORDS = 20_000
"""Characters of an error that are looked at; some servers repeat the whole request in it."""

REASONING_PARAMETERS = frozenset({"reasoning_effort", "thinking", "reasoning"})


_ABOUT_REQUEST = frozenset({400, 404, 405, 415, 422, 500, 501})
"""Statuses under which servers refuse a request for what is in it."""


@dataclass(frozen=True)
class Sent:
    """A request as it went out, as far as lessons need it."""

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()
    parameters: frozenset[str] = frozenset()
    """Those that the operator chose."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """Those of them that are numbers, as they were chosen."""
    streamed: bool = True
    images: bool = False
    carried: bool = False
    """Messages hold what came with earlier replies."""

    @property
    def nameless_results(self) -> bool:
        """True if a result does not name its tool."""
        return any(each.get("role") == "tool" and not each.get("name") for each in self.messages)

    @property
    def user_after_tool(self) -> bool:
        """True if a message of the user follows a tool's result."""
        return ("tool", "user") in self._pairs()

    @property
    def equal_neighbours(self) -> bool:
        """True if two messages of the user or two of the assistant follow each other."""
        return any(first == second != "tool" for first, second in self._pairs())

    @property
    def textless_calls(self) -> bool:
        """True if a message has calls and no text."""
        return any(each.get("tool_calls") and not each.get("content") for each in self.messages)

    @property
    def several_calls(self) -> bool:
        """True if a message has more than one call."""
        return any(len(each.get("tool_calls") or ()) > 1 for each in self.messages)

    @property
    def with_reasoning(self) -> bool:
        """True if a message holds the text of earlier reasoning."""
        return any(each.get("reasoning_content") or each.get("reasoning") for each in self.messages)

    def keywords(self) -> set[str]:
        """The keywords of JSON Schema in the tools."""
        found: set[str] = set()
        _collect([(tool.get("function") or {}).get("parameters") for tool in self.tools], found)
        return found

    def _pairs(self) -> set[tuple[str, str]]:
        return set(pairwise(str(each.get("role")) for each in self.messages))


def _collect(value: Any, found: set[str]) -> None:
    if isinstance(value, Mapping):
        found.update(map(str, value))
        for each in value.values():
            _collect(each, found)
    elif isinstance(value, list | tuple):
        for each in value:
            _collect(each, found)


def about_template(words: str) -> bool:
    """True if an error comes from the making of the prompt, so that the same request fails for ever."""
    return said.TEMPLATE.search(words) is not None or said.ORDER.search(words) is not None


def takes_no_results(words: str, sent: Sent) -> bool:
    """True if the server's template has no place for results of tools, once no order of the messages was
    taken.
    """
    held = any(message.get("role") == "tool" for message in sent.messages)
    refused = said.ORDER.search(words) or said.ROLES.search(words) or _lacks_role(words, "tool")
    return held and bool(refused)


def _lacks_role(words: str, role: str) -> bool:
    """True if an error lists the roles that there are, and this is none of them."""
    listed = _roles(words)
    return bool(listed) and re.search(rf"\b{role}\b", listed, re.IGNORECASE) is None


def _roles(words: str) -> str:
    """The roles that an error lists; empty if it lists none."""
    listed = said.ROLE_LIST.search(words) if re.search("role|variant", words, re.IGNORECASE) else None
    return listed[0] if listed is not None else ""


def learnt(habits: Habits, words: str, status: int | None, sent: Sent) -> Iterator[Habits]:
    """Give the habits that an error's words speak of, the likeliest first; nothing if they teach nothing.

    `words`: all words of the error, its body included. `status` is None if no server sent one.
    """
    about_request = status is None or status in _ABOUT_REQUEST or about_template(words)
    if said.OF_THE_MODEL.search(words) or not (about_request or said.STREAM.search(words)):
        return
    lessons = (_options, _turns, _names, _ids, _reasoning, _content, _parameters, _schema, _images)
    for lesson in lessons:
        for found in lesson(habits, words, sent):
            if found != habits:
                yield found


def guessed(habits: Habits, sent: Sent) -> Iterator[Habits]:
    """Give the shapes to try if the words teach nothing: those of which the request has the opposite, one by
    one and then all of them.
    """
    changes: list[dict[str, Any]] = []
    if sent.user_after_tool or sent.equal_neighbours:
        changes.append({"after_tool": "result", "turns": "alternate"})
    if sent.textless_calls and habits.content in {"null", "absent"}:
        changes.append({"content": "empty"})
    if sent.with_reasoning or sent.carried:
        changes.append({"reasoning": "none", "carried": False, "call_fields": False})
    if sent.several_calls:
        changes.append({"parallel": False})
    for change in changes:
        yield replace(habits, **change)
    if len(changes) > 1:
        yield replace(habits, **{name: value for change in changes for name, value in change.items()})


def _options(habits: Habits, words: str, sent: Sent) -> Iterator[Habits]:
    if habits.usage and said.STREAM_OPTIONS.search(words):
        yield replace(habits, usage=False)
    if habits.tool_choice and said.TOOL_CHOICE.search(words):
        yield replace(habits, tool_choice=False)
    if habits.encrypted and said.ENCRYPTED.search(words):
        yield replace(habits, encrypted=False)
    if sent.streamed and habits.stream and said.STREAM.search(words):
        yield replace(habits, stream=False)
    if said.SOME_PARAMETER.search(words):
        yield replace(habits, tool_choice=False)
        yield replace(habits, tool_choice=False, usage=False, refused=habits.refused | sent.parameters)


def _turns(habits: Habits, words: str, sent: Sent) -> Iterator[Habits]:
    system = (
        said.SYSTEM_REFUSED.search(words)
        or _lacks_role(words, "system")
        or (said.ROLES.search(words) and "system" not in _roles(words).lower())
    )
    if system and habits.system != "user" and any(each.get("role") == "system" for each in sent.messages):
        yield replace(habits, system="user")
    if said.SYSTEM_PLACE.search(words) and habits.system == "any":
        yield replace(habits, system="first")
    if said.SINGLE.search(words) and sent.several_calls:
        yield replace(habits, parallel=False)
    if said.ORDER.search(words):
        if habits.after_tool == "user" or habits.turns == "any":
            place = "result" if habits.after_tool == "user" else habits.after_tool
            yield replace(habits, after_tool=place, turns="alternate")
        if sent.several_calls:
            yield replace(habits, after_tool="result", turns="alternate", parallel=False)
        for other in ("assistant", "last_user"):
            yield replace(habits, after_tool=other, turns="alternate")


def _names(habits: Habits, words: str, sent: Sent) -> Iterator[Habits]:
    if sent.nameless_results and said.RESULT_NAMES.search(words):
        yield replace(habits, names=True)


def _ids(habits: Habits, words: str, _: Sent) -> Iterator[Habits]:
    if not said.ID.search(words):
        return
    if said.NINE.search(words) and habits.ids != "nine":
        yield replace(habits, ids="nine")
    elif said.ID_FORM.search(words):
        if habits.ids == "any":
            yield replace(habits, ids="plain")
        if habits.ids != "nine":
            yield replace(habits, ids="nine")


_AFTER_NULL: tuple[Content, ...] = ("empty", "filled", "null", "absent")
_AFTER_EMPTY: tuple[Content, ...] = ("null", "absent", "filled")


def _content(habits: Habits, words: str, sent: Sent) -> Iterator[Habits]:
    if not sent.textless_calls and habits.content != "filled":
        return
    if said.REASONING.search(words) or said.SIGNATURE_WANTED.search(words):
        return
    empty = said.CONTENT_EMPTY.search(words) is not None
    if not empty and not said.CONTENT_NULL.search(words):
        return
    order = _AFTER_EMPTY if empty and habits.content == "empty" else _AFTER_NULL
    for content in order:
        if content != habits.content:
            yield replace(habits, content=content)


_MORE_REASONING: tuple[Reasoning, ...] = ("empty", "filled", "every")


def _reasoning(habits: Habits, words: str, sent: Sent) -> Iterator[Habits]:
    """Wanted back and refused are opposites in nearly the same words: what is wanted is looked at first."""
    if said.SIGNATURE_WANTED.search(words):
        if not (habits.call_fields and habits.carried):
            yield replace(habits, call_fields=True, carried=True)
        yield replace(habits, call_fields=True, carried=True, signed=True)
    elif said.THINKING_BLOCK.search(words):
        if not habits.carried:
            yield replace(habits, carried=True)
        if sent.parameters & REASONING_PARAMETERS:
            yield replace(habits, thinks=False)
    elif wants_reasoning(words):
        yield from _reasoning_back(habits, words)
    elif said.REASONING.search(words) or said.SIGNATURE_BAD.search(words):
        yield from _reasoning_left_out(habits, words, sent)


def wants_reasoning(words: str) -> bool:
    """True if a server wants the reasoning of earlier replies back, and not the opposite."""
    if said.REASONING_BACK.search(words) is None:
        return False
    return said.NOT_TAKEN.search(words) is None or said.REASONING_MISSING.search(words) is not None


def _reasoning_back(habits: Habits, words: str) -> Iterator[Habits]:
    name = "reasoning_content" if "reasoning_content" in words else habits.reasoning_name
    back = replace(habits, carried=True, reasoning_name=name)
    if habits.reasoning == "none" or not habits.carried:
        yield replace(back, reasoning="own")
    known = habits.reasoning in _MORE_REASONING
    for reasoning in _MORE_REASONING[_MORE_REASONING.index(habits.reasoning) + 1 if known else 0 :]:
        yield replace(back, reasoning=reasoning)


def _reasoning_left_out(habits: Habits, words: str, sent: Sent) -> Iterator[Habits]:
    refused = said.NOT_TAKEN.search(words) is not None
    if refused and sent.with_reasoning and habits.reasoning != "none" and said.REASONING_TEXT.search(words):
        yield replace(habits, reasoning="none")
    if sent.carried and habits.carried and (refused or said.SIGNATURE_BAD.search(words)):
        yield replace(habits, carried=False, reasoning="none")
    if habits.thinks and sent.parameters & REASONING_PARAMETERS:
        yield replace(habits, thinks=False)


def _parameters(habits: Habits, words: str, sent: Sent) -> Iterator[Habits]:
    not_taken = said.NOT_TAKEN.search(words) is not None
    if not_taken and habits.call_fields and sent.carried and said.FIELDS_OF_CALLS.search(words):
        yield replace(habits, call_fields=False)
    if sent.carried and habits.carried and re.search(r"extra_forbidden|extra inputs", words, re.IGNORECASE):
        yield replace(habits, carried=False, reasoning="none", call_fields=False)
    if not (not_taken or said.VALUE_REFUSED.search(words)):
        return
    named = frozenset(name for name in sent.parameters if _names_parameter(words, name)) - habits.refused
    yield from _bounded(habits, words, named, sent)
    if said.PROMPT.search(words):
        # The prompt and the reply together are too long: a shorter prompt heals that.
        named -= {"max_tokens"}
    if len(named) > 1 and said.NOT_BOTH.search(words):
        yield replace(habits, refused=habits.refused | named - {min(named)})
    renamed = dict(habits.renamed)
    for name in sorted(named):
        instead = said.INSTEAD.search(words)
        new = next(filter(None, instead.groups()), "") if instead is not None else ""
        if new and new != name and new == said.NEW_NAMES.get(name) and name not in renamed:
            yield replace(habits, renamed=(*habits.renamed, (name, new)))
    if named:
        yield replace(habits, refused=habits.refused | named)


def _names_parameter(words: str, name: str) -> bool:
    """True if an error speaks of a parameter, in one of its spellings."""
    spelling = said.SPELLINGS.get(name, rf"\b{re.escape(name)}\b")
    return re.search(spelling, words, re.IGNORECASE) is not None


def _bounded(habits: Habits, words: str, named: frozenset[str], sent: Sent) -> Iterator[Habits]:
    """Give the bounds that an error names, the largest first; of a window the half, for there is a prompt too."""
    window = said.WINDOW.search(words)
    for name in sorted(named & sent.numbers.keys()):
        value = sent.numbers[name]
        if window is not None:
            size = int(next(filter(None, window.groups())))
            prompt = said.WITH_PROMPT.search(words)
            room = size if prompt is None else size - int(prompt[1])
            found = {size // 2} if value >= room >= size // 2 > 0 else set[float]()
        else:
            found = _bounds(words)
        others = tuple(pair for pair in habits.bounds if pair[0] != name)
        for most in sorted((each for each in found if 0 < each < value), reverse=True):
            if isinstance(value, int) is isinstance(most, int) or not isinstance(value, int):
                yield replace(habits, bounds=(*others, (name, most)))


def _bounds(words: str) -> set[float]:
    """The largest numbers that an error allows."""
    words = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", words)
    found: set[float] = set()
    for match in said.BOUND.finditer(words):
        kind, text = next((kind, text) for kind, text in match.groupdict().items() if text)
        number = float(text) if "." in text else int(text)
        behind = words[match.end() : match.end() + 2].strip()
        exclusive = (
            kind in {"below", "under"}
            or (kind in {"range", "open_range"} and behind.startswith(")"))
            or said.EXCLUSIVE.match(words, match.end()) is not None
        )
        if not exclusive:
            found.add(number)
        elif isinstance(number, int) and number > 1:
            found.add(number - 1)
    return found


def _schema(habits: Habits, words: str, sent: Sent) -> Iterator[Habits]:
    if not sent.tools or not said.SCHEMA.search(words):
        return
    for shape, pattern in said.SCHEMA_SHAPES.items():
        if shape not in habits.schema and pattern.search(words):
            yield replace(habits, schema=habits.schema | {shape})
    there = sent.keywords()
    named = frozenset(
        keyword for keyword in said.SCHEMA_KEYWORDS if keyword in there and _names_keyword(words, keyword)
    )
    if named - habits.schema and said.NOT_TAKEN.search(words):
        yield replace(habits, schema=habits.schema | named)
    if said.SCHEMA_REFUSED.search(words):
        # It does not say of what: only types, names and descriptions are left.
        everything = there.intersection(said.SCHEMA_KEYWORDS) | said.SCHEMA_SHAPES.keys()
        yield replace(habits, schema=habits.schema | everything)


_KEYWORD_LIST = (
    r"(?:keyword|field|propert(?:y|ies)|attribute|constraint)s?\W{1,4}"
    r"(?:[$\w]+(?:\s*[,/]\s*|\s+(?:and|or)\s+))*"
)
"""Words before a keyword in a list of those that are not taken."""


def _names_keyword(words: str, keyword: str) -> bool:
    """True if an error names a keyword: one that is an English word too must stand in quotes, behind a dot,
    or in a list of keywords.
    """
    name = re.escape(keyword)
    before = rf"(?:['\"`./]|{_KEYWORD_LIST})" if keyword.islower() else r"(?<![\w$])"
    behind = rf"|\b{name}\W{{1,3}}(?:keyword|constraint)" if keyword.islower() else ""
    return re.search(rf"{before}{name}(?!\w){behind}", words) is not None


def _images(habits: Habits, words: str, sent: Sent) -> Iterator[Habits]:
    if not sent.images:
        return
    if habits.image_url == "object" and said.IMAGE_TEXT.search(words):
        yield replace(habits, image_url="text")
    if habits.images and refuses_images(words):
        yield replace(habits, images=False)


class Learning:
    """One call's search for what its server takes. `habits` are those that the next request follows."""

    def __init__(
        self, habits: Habits, body_of: Callable[[Habits], Any], sent_of: Callable[[Habits], Sent]
    ) -> None:
        """`body_of` makes the request's body with some habits, `sent_of` says what it holds."""
        self.habits = habits
        self._body_of = body_of
        self._sent_of = sent_of
        self._before = habits
        """The habits before the newest try."""
        self._seen: set[str] = set()
        self._words = ""
        self._tries = 0

    @property
    def sent(self) -> Sent:
        """Facts about the request with the present habits."""
        return self._sent_of(self.habits)

    def refused(self, words: str, status: int | None, *, guess: bool) -> bool:
        """True if there is another request to try after this refusal; `habits` are then its habits.

        `guess`: the error is one about the request, so that shapes may be tried even if its words teach
        nothing.
        """
        words = words[:LONGEST_WORDS]
        self._seen.add(_digest(self._body_of(self.habits)))
        if self._tries == MOST_TRIES:
            return False
        self._tries += 1
        if _plain(words) == self._words:
            # What was tried changed nothing.
            self.habits = self._before
        self._words, self._before = _plain(words), self.habits
        for habits in self._candidates(words, status, guess=guess):
            if _digest(self._body_of(habits)) not in self._seen:
                self.habits = habits
                return True
        return False

    def _candidates(self, words: str, status: int | None, *, guess: bool) -> Iterator[Habits]:
        yield from learnt(self.habits, words, status, self.sent)
        if guess and not said.OF_THE_MODEL.search(words):
            yield from guessed(self.habits, self.sent)


def _plain(words: str) -> str:
    """An error's words without what differs from time to time: numbers and ids."""
    return re.sub(r"\b[\w-]*\d[\w-]*\b", "#", words)


def _digest(body: Any) -> str:
    return hashlib.sha256(
        json.dumps(body, sort_keys=True, default=str).encode("utf-8", "replace")
    ).hexdigest()
