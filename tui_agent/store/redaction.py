"""Secrets never reach the disk: what an event says of them is masked before the event is applied or written.

The recorder redacts first, so that the live state and the state after replay are folded from the same events;
the arguments that a tool runs with stay exact in memory. What is masked says so: `[masked:OPENAI_API_KEY]`
for a known value, `[masked:github-token]` for a known shape, `[masked:github-token-2]` for the next secret of
that shape. A model that writes such a placeholder means the secret: `restore` puts it back. Redacting also
makes events storable: text that UTF-8 or JSON cannot hold (lone surrogates, NaN, bottomless nesting) is
replaced visibly.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import quote

from tui_agent.core.events import Event, Value
from tui_agent.runtime.recorder import MaskedSecretError
from tui_agent.secret_names import named_like_a_secret
from tui_agent.store.secrets import MAY_BEGIN, SHAPES, WITH_LEAD, Shape

E = TypeVar("E", bound=Event)

MIN_SECRET = 6
"""Shorter values of variables named like secrets are not masked: they would blot out ordinary words."""

MAX_DEPTH = 64
"""Nesting of arguments that is kept; deeper ones no JSON reader is sure to take."""

_TRIVIAL = {
    *(
        "changeme",
        "changeit",
        "default",
        "development",
        "disabled",
        "enabled",
        "example",
        "localhost",
        "masked",
    ),
    *(
        "password",
        "postgres",
        "production",
        "required",
        "secret",
        "testing",
        "undefined",
        "unknown",
        "username",
    ),
}
_PATH = re.compile(
    r"(?:(?:~|\.{1,2})|/(?:home|root|usr|etc|var|tmp|run|opt|mnt|srv|Users|private|workspace|secrets))"
    r"(?:/[\w.@ -]+)*/?"
)


def worth_masking(value: str) -> bool:
    """True if a value can be a secret: long enough, and neither a number, a path nor a plain setting."""
    if len(value) < MIN_SECRET or value.lower() in _TRIVIAL or len(set(value)) < 3:
        return False
    if re.fullmatch(r"[\d.,]{1,11}", value):
        return False
    return not _PATH.fullmatch(value)


PLACEHOLDER = re.compile(r"\[masked:[\w.-]{1,200}\]")


class Redactor:
    """Masks the values it was given and the shapes of `secrets.SHAPES`. Cheap if nothing matches.

    It remembers, in memory only, which secret each placeholder stands for.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        """`values`: secrets by the name that a mask shows. All are masked, whatever they are."""
        self.values: tuple[tuple[str, str], ...] = ()
        self._placeholders: dict[tuple[str, str], str] = {}
        self._secrets: dict[str, set[str]] = {}
        self._lock = Lock()
        self.learn(values)

    def learn(self, values: Mapping[str, str]) -> None:
        """Mask these too from now on."""
        found = dict(self.values)
        for name, value in values.items():
            for form in (value, value.strip(), json.dumps(value)[1:-1], quote(value, safe="")):
                if len(form) >= MIN_SECRET:
                    mask = found.setdefault(form, _placeholder(name, 1))
                    self._secrets.setdefault(mask, set())
        # The longest first: a value that holds another is masked whole.
        self.values = tuple(sorted(found.items(), key=lambda item: -len(item[0])))
        anchors = [*found, *(anchor for shape in SHAPES for anchor in shape.anchors)]
        self._suspect = re.compile("|".join(map(re.escape, anchors)))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Redactor:
        """A redactor for the secrets in `environment`."""
        named = {
            name: value
            for name, value in environment.items()
            if named_like_a_secret(name) and worth_masking(value.strip())
        }
        return cls(named)

    def reserve(self, text: str) -> None:
        """Give none of the placeholders in `text` to a secret that is masked from now on.

        For a session that goes on: what its earlier placeholders stood for is known no more.
        """
        for mask in PLACEHOLDER.findall(text):
            self._secrets.setdefault(mask, set())

    def restore(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with each placeholder replaced by its secret, for a tool that is about to run.

        Raises `MaskedSecretError` if a placeholder is unknown or stands for more than one text: written as it
        is, it would destroy the secret in the user's file.
        """
        return {name: self._restored(value, name) for name, value in arguments.items()}

    def _restored(self, value: Any, name: str) -> Any:
        match value:
            case str():
                return PLACEHOLDER.sub(lambda match: self._secret(match[0], name), value)
            case list():
                return [self._restored(item, name) for item in value]
            case dict():
                return {self._restored(key, name): self._restored(item, name) for key, item in value.items()}
            case _:
                return value

    def _secret(self, mask: str, name: str) -> str:
        secrets = self._secrets.get(mask, set())
        if len(secrets) == 1:
            return next(iter(secrets))
        why = (
            "could stand for several texts" if secrets else "stands for no secret that this session has read"
        )
        raise MaskedSecretError(
            f"The call was not carried out: its argument '{name}' holds '{mask}', which {why}. Placeholders "
            "hide secrets, and writing one would put it in the secret's place. Read the file again and use "
            "the placeholder that it shows now, or leave the line with the secret out (edit_file changes "
            "only the lines around it)."
        )

    def redact(self, event: E) -> E:
        """The event with its secrets masked; the same object if there are none."""
        changes = self._replaced(event, 0)
        return event.model_copy(update=changes) if changes else event

    def text(self, text: str) -> str:
        """The text with its secrets masked; the same object if there are none."""
        if not text.isascii():
            text = storable(text)
        # One expression rules a short text out fastest; in a long one, looking for each literal is faster.
        if len(text) <= _SHORT and self._suspect.search(text) is None:
            return text
        for value, mask in self.values:
            if value in text:
                text = text.replace(value, mask)
                self._secrets[mask].add(value)
        for shape in SHAPES:
            text = shape.masked(text, self._mask)
        return text

    def _mask(self, name: str, secret: str) -> str:
        """The placeholder of a secret of a known shape: always the same one, and no other's."""
        known = self._placeholders.get((name, secret))
        if known is not None:
            return known
        with self._lock:
            number = 1
            while (mask := _placeholder(name, number)) in self._secrets:
                number += 1
            self._secrets[mask] = {secret}
            return self._placeholders.setdefault((name, secret), mask)

    def stream(self) -> StreamRedactor:
        """A redactor for text that comes in pieces."""
        return StreamRedactor(self)

    def _clean(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            return self.text(value) if len(value) >= MIN_SECRET or not value.isascii() else value
        if kind in _EXACT:
            return value
        if kind is float:
            return value if math.isfinite(value) else str(value)
        if depth > MAX_DEPTH:
            return "[nested too deeply to be kept]" if kind in _NESTED else value
        if kind is dict:
            return self._clean_dict(value, depth)
        if kind is tuple or kind is list:
            items = [self._clean(item, depth + 1) for item in value]
            if all(new is old for new, old in zip(items, value, strict=True)):
                return value
            return tuple(items) if kind is tuple else items
        if isinstance(value, Value):
            changes = self._replaced(value, depth + 1)
            return value.model_copy(update=changes) if changes else value
        return value

    def _replaced(self, owner: Event | Value, depth: int) -> dict[str, Any]:
        """The fields that become others; a number that JSON cannot hold counts as one that was not said."""
        changes: dict[str, Any] = {}
        for name, value in owner.__dict__.items():
            kind = type(value)
            if not value or kind in _EXACT:
                continue
            if kind is float:
                if not math.isfinite(value):
                    unsaid = type(owner).model_fields[name].get_default()
                    changes[name] = unsaid if isinstance(unsaid, float) else None
            elif (clean := self._clean(value, depth)) is not value:
                changes[name] = clean
        return changes

    def _clean_dict(self, value: dict[Any, Any], depth: int) -> dict[Any, Any]:
        clean = {self._clean(key, depth + 1): self._clean(part, depth + 1) for key, part in value.items()}
        same = len(clean) == len(value) and all(
            new_key is key and new is part
            for (new_key, new), (key, part) in zip(clean.items(), value.items(), strict=True)
        )
        return value if same else clean


def _placeholder(name: str, number: int) -> str:
    return f"[masked:{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}{f'-{number}' if number > 1 else ''}]"


_SHORT = 512
_EXACT = frozenset({int, bool, type(None)})
_NESTED = (dict, list, tuple)


def storable(text: str) -> str:
    """Text that UTF-8 can hold: lone surrogates are replaced. The same object if there are none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class StreamRedactor:
    """Masks secrets in text that comes in pieces, even if one is split between two of them.

    What may be the beginning of a secret is held back until more text tells; never more than `LIMIT`
    characters, since what has grown past that is masked, and the rest of it swallowed as it comes.
    """

    LIMIT = 4_096

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""
        self._before = ""
        self._swallowing: Shape | None = None

    def feed(self, piece: str) -> str:
        """The text that may be shown now: what was held back and `piece`, less what may be half a secret."""
        if self._swallowing is not None:
            piece = self._swallowing.rest(piece)
            if not piece:
                return ""
            self._swallowing = None
        buffer = self._held + piece
        start, shape = self._open_from(buffer)
        if len(buffer) - start <= self.LIMIT:
            self._held = buffer[start:]
            return self._emit(buffer[:start])
        self._held = ""
        if shape is None or not shape.lines or (cut := _after_last_line(buffer)) <= start:
            cut = len(buffer)
        # Of a key that goes over lines only whole ones, so that each is masked as such.
        clean, rest = self._emit(buffer[:cut]), buffer[cut:]
        if _ENDS_MASKED.search(clean[-_LONGEST_END:]):
            self._swallowing = shape
        return clean + (self.feed(rest) if rest else "")

    def flush(self) -> str:
        """The rest, at the end of the text."""
        held, self._held = self._held, ""
        self._swallowing = None
        return self._emit(held)

    def _emit(self, text: str) -> str:
        if not text:
            return ""
        # Shapes look at the character before them, which may have gone out with an earlier piece.
        clean = self._redactor.text(self._before + text)[len(self._before) :]
        self._before = clean[-1:] or self._before
        return clean

    def _open_from(self, buffer: str) -> tuple[int, Shape | None]:
        """The place of the earliest possible beginning of an unfinished secret (the end: there is none), and
        its shape.
        """
        size = len(buffer)
        start, found = size, None
        for value, _ in self._redactor.values:
            start = min(start, _prefix_at_end(buffer, value))
        # A secret that is not finished reaches the end, and has no space in it unless it goes over lines.
        near = max(0, size - self.LIMIT - _MARGIN)
        space = max(buffer.rfind(blank, near) for blank in " \n\t")
        line = 0 if space == -1 else max(0, space - _MARGIN)
        short = size <= _SHORT and MAY_BEGIN.search(buffer) is None
        for shape in WITH_LEAD if short else SHAPES:
            offset = near if shape.lines else line
            begins = offset + shape.open_from(buffer[offset:] if offset else buffer)
            if begins < start:
                start, found = begins, shape
        if buffer and "\ud800" <= buffer[-1] <= "\udbff":
            start = min(start, size - 1)
        return self._uncut(buffer, start), found

    def _uncut(self, buffer: str, start: int) -> int:
        """`start`, or the beginning of a whole secret that emitting up to `start` would cut in two."""
        base = max(0, start - self.LIMIT - _MARGIN)
        near = buffer[base:] if base else buffer
        while start < len(buffer):
            earlier = start - base
            for value, _ in self._redactor.values:
                found = near.find(value, max(0, earlier - len(value) + 1), earlier + len(value) - 1)
                earlier = found if found != -1 and found < earlier else earlier
            for shape in SHAPES:
                earlier = shape.span_over(near, earlier)
            if earlier == start - base:
                break
            start = base + earlier
        return start


def _after_last_line(text: str) -> int:
    """The beginning of the last line, after a line break or its escape; 0 if there is none."""
    return max((text.rfind(end) + len(end) for end in ("\n", "\\n") if end in text), default=0)


_MARGIN = 128
"""Characters in front of a secret that belong to its shape: `Bearer `, a variable's name."""
_LONGEST_END = 300
_ENDS_MASKED = re.compile(r"\[masked:[^\]]+\](?:\s|\\[nrt])*\Z")


def _prefix_at_end(text: str, literal: str) -> int:
    """The beginning of the longest proper prefix of `literal` that `text` ends with; the end of `text` for
    none.
    """
    first = literal[0]
    position = text.find(first, max(0, len(text) - len(literal) + 1))
    while position != -1:
        if literal.startswith(text[position:]):
            return position
        position = text.find(first, position + 1)
    return len(text)
