"""The shapes of well-known secrets: their beginnings, their form, and the places at which one may be
unfinished.

Data for `redaction`, which alone decides what is done with them. A shape is tried only in texts with one of
its anchors, since finding a literal is many times faster than matching an expression. Shapes ask for what
prose and code do not have (a length, a digit), because masking a word of the user's source would mislead the
model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tui_agent.secret_names import LAST_WORDS, named_like_a_secret

_WORD = r"[A-Za-z0-9_-]"
_NAMED = f"(?:{'|'.join(LAST_WORDS)})"
_ASSIGNED = tuple(f"{word}=" for word in LAST_WORDS)
_VALUE = r"[A-Za-z0-9+/=_.~@#%^*!-]"
_URL_VALUE = r"[^/\s:@\"'\\;|&<>()$`{}\[]"
"""Nothing by which a shell begins another command: a mask must not hide one from who approves it."""
_LONGEST_NAME = 200
"""Characters of a variable's name that are looked at in front of its value."""
_START = r"(?<![A-Za-z0-9_-])"


@dataclass(frozen=True)
class Shape:
    """One kind of secret. `pattern` may keep a part in front of it as the group `keep`."""

    name: str
    anchors: tuple[str, ...]
    pattern: re.Pattern[str]
    unfinished: re.Pattern[str]
    """Matches at the end of a text when the secret may go on in the next piece; groups as in `pattern`."""
    tail: re.Pattern[str]
    """The characters of the rest of such a secret."""
    clues: tuple[str, ...] = ()
    """Literals of which one is in every text that holds such a secret; `anchors` if none are given."""
    before: str = ""
    """Characters that `pattern` takes in front of a clue."""
    lead: bool = False
    """Something stands before the anchor that `unfinished` must see."""
    lines: bool = False
    """It goes over several lines."""
    anchor_ends: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        ends = {anchor[:length] for anchor in self.anchors for length in range(1, len(anchor))}
        object.__setattr__(self, "clues", self.clues or self.anchors)
        object.__setattr__(self, "anchor_ends", tuple(sorted(ends, key=len, reverse=True)))

    def matches(self, text: str) -> Iterator[re.Match[str]]:
        """Every secret of this shape, found by its clues: literals are found far faster than expressions."""
        end = 0
        for position in sorted(_occurrences(text, self.clues)):
            begin = position
            if self.before:
                front = text[max(0, position - _LONGEST_NAME) : position]
                begin -= len(front) - len(front.rstrip(self.before))
            if begin >= end and (match := self.pattern.match(text, begin)) is not None:
                end = match.end()
                yield match

    def masked(self, text: str, mask: Callable[[str, str], str]) -> str:
        """The text with every secret of this shape replaced by `mask(name, secret)`."""
        parts: list[str] = []
        end = 0
        for match in self.matches(text):
            for name, start, stop in self.secrets(match):
                parts += (text[end:start], mask(name, text[start:stop]))
                end = stop
        return "".join((*parts, text[end:])) if parts else text

    def secrets(self, match: re.Match[str]) -> Iterator[tuple[str, int, int]]:
        """Names and places of the secrets in a match."""
        groups = match.groupdict()
        start = match.end("keep") if groups.get("keep") is not None else match.start()
        yield groups.get("name") or self.name, start, match.end()

    def span_over(self, text: str, position: int) -> int:
        """The beginning of a whole secret that `position` would cut in two; `position` itself for none."""
        for match in self.matches(text):
            if match.start() < position < match.end():
                return match.start()
        return position

    def open_from(self, text: str) -> int:
        """The beginning of a secret that may go on after the end of `text`; the length of `text` for none."""
        if self.lead or any(clue in text for clue in self.clues):
            match = self.unfinished.search(text)
            if match is not None:
                return match.start()
        for end in self.anchor_ends:
            if text.endswith(end):
                return len(text) - len(end)
        return len(text)

    def rest(self, piece: str) -> str:
        """`piece` without the part at its front that belongs to a secret already masked."""
        match = self.tail.match(piece)
        return piece[match.end() :] if match else piece


def _occurrences(text: str, literals: tuple[str, ...]) -> Iterator[int]:
    for literal in literals:
        position = text.find(literal)
        while position != -1:
            yield position
            position = text.find(literal, position + 1)


class _PrivateKey(Shape):
    """A block of PEM. Only lines of key material are masked, each by itself: whatever else stands between
    the marks (a command, a header, line numbers) stays readable.
    """

    def secrets(self, match: re.Match[str]) -> Iterator[tuple[str, int, int]]:
        """The runs of base64 in the block that are too long for a word."""
        text, end = match.string, match.end("head")
        while line := _KEY_LINE.search(text, end, match.end("body")):
            yield self.name, *line.span()
            end = line.end()
            if last := _LAST_KEY_LINE.match(text, end, match.end()):
                yield self.name, *last.span("line")
                end = last.end("line")


class _Assignment(Shape):
    """A variable set to a value; which names count is said in `secret_names`."""

    def secrets(self, match: re.Match[str]) -> Iterator[tuple[str, int, int]]:
        """The value, if the name is one of a secret."""
        if named_like_a_secret(match["name"]):
            yield from super().secrets(match)


def _token(
    name: str,
    *anchors: str,
    body: str = "[A-Za-z0-9]",
    least: int = 16,
    digit: bool = False,
    clues: tuple[str, ...] = (),
) -> Shape:
    """A prefix followed by at least `least` characters of one class."""
    heads = "|".join(re.escape(anchor) for anchor in anchors)
    ahead = rf"(?={body}*\d)" if digit else ""
    return Shape(
        name,
        anchors,
        re.compile(rf"{_START}(?:{heads}){ahead}{body}{{{least},}}"),
        # Without _START: what stands before may be a secret itself, and gone by then.
        re.compile(rf"(?:{heads}){body}*\Z"),
        re.compile(rf"{body}*"),
        clues,
    )


_KEY_LINE = re.compile(
    # A line break may stand there as an escape, whose letter is no part of the line.
    r"(?:(?<=\\[nrt])|(?<![A-Za-z0-9+/=\\]))[A-Za-z0-9+/]{40,}={0,2}(?![A-Za-z0-9+/=])"
)
_LAST_KEY_LINE = re.compile(
    r"(?:\s|\\[nrt]|\d+[\t:|])+"
    r"(?P<line>[A-Za-z0-9+/]{24,}={0,2}|[A-Za-z0-9+/]+={1,2})(?=(?:\s|\\[nrt]|\d+[\t:|])*-----END )"
)
"""The short line at the end. One of letters alone and as short as a word could be a command: it stays."""

SHAPES: tuple[Shape, ...] = (
    _token("api-key", "sk-", body=_WORD, least=16, digit=True),
    _token("github-token", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", least=20),
    _token("github-token", "github_pat_", body="[A-Za-z0-9_]", least=20),
    _token("gitlab-token", "glpat-", body=_WORD),
    _token(
        "slack-token",
        "xoxb-",
        "xoxp-",
        "xoxa-",
        "xoxo-",
        "xoxr-",
        "xoxs-",
        "xoxe-",
        body=_WORD,
        least=10,
        clues=("xox",),
    ),
    _token("aws-key-id", "AKIA", "ASIA", body="[A-Z0-9]"),
    _token("google-key", "AIza", body=_WORD, least=30),
    _token("google-token", "ya29.", body=_WORD, least=20),
    _token("stripe-key", "sk_live_", "rk_live_", "sk_test_", "rk_test_"),
    _token("huggingface-token", "hf_", least=30),
    _token("groq-key", "gsk_", least=30),
    _token("xai-key", "xai-", least=30),
    _token("npm-token", "npm_", least=30),
    _token("pypi-token", "pypi-", body=_WORD, least=40),
    _token("sendgrid-key", "SG.", body=r"[A-Za-z0-9_.-]", least=40),
    Shape(
        "jwt",
        ("eyJ",),
        re.compile(rf"{_START}eyJ{_WORD}{{8,}}\.eyJ{_WORD}{{8,}}\.{_WORD}*"),
        re.compile(rf"{_START}eyJ[A-Za-z0-9_.-]*\Z"),
        re.compile(r"[A-Za-z0-9_.-]*"),
    ),
    _PrivateKey(
        "private-key",
        ("-----BEGIN ",),
        re.compile(
            r"(?P<head>-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----)"
            r"(?P<body>(?:[^-]++|-(?!----))*+)(?:-----END )?",
        ),
        re.compile(
            r"-----BEGIN (?:[A-Z ]*|[A-Z ]*PRIVATE KEY(?: BLOCK)?-{1,5}(?:(?!-----END [A-Z ]+-----).)*)\Z",
            re.DOTALL,
        ),
        re.compile(r"(?:[A-Za-z0-9+/=\s]|\\[nrt])*(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----)?"),
        lines=True,
    ),
    Shape(
        "bearer-token",
        ("Bearer ", "bearer ", "BEARER "),
        re.compile(r"(?P<keep>\b[Bb](?:earer|EARER) +)(?=[A-Za-z0-9._~+/-]*\d)[A-Za-z0-9._~+/-]{16,}=*"),
        re.compile(r"\b[Bb](?:earer|EARER) +[A-Za-z0-9._~+/=-]*\Z"),
        re.compile(r"[A-Za-z0-9._~+/=-]*"),
        ("earer ", "EARER "),
        before="Bb",
    ),
    Shape(
        "url-password",
        ("://",),
        re.compile(rf"(?P<keep>://[^/\s:@\"'\\]*:)(?=[^/\s:@]*\d){_URL_VALUE}{{8,}}(?=@)"),
        re.compile(r"://[^/\s:@\"'\\]*(?::[^/\s:@\"'\\]{0,200})?\Z"),
        re.compile(r"[^/\s:@\"'\\]*"),
    ),
    _Assignment(
        "variable",
        _ASSIGNED,
        # Lines of environment files: a capital name, no spaces, a value with letters and digits and nothing
        # of code.
        re.compile(
            rf"(?P<keep>(?:^|(?<=\\n)|(?<=\s))(?P<name>[A-Z][A-Z0-9_]*{_NAMED})=[\"']?)"
            rf"(?={_VALUE}*\d)(?={_VALUE}*[A-Za-z])(?![./]){_VALUE}{{8,}}(?=[\"'\s\\]|$)",
            re.MULTILINE,
        ),
        re.compile(
            rf"(?:^|(?<=\\n)|(?<=\s))[A-Z][A-Z0-9_]{{0,100}}(?:=[\"']?{_VALUE}{{0,4000}})?\Z",
            re.MULTILINE,
        ),
        re.compile(rf"{_VALUE}*"),
        before="ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_",
        lead=True,
    ),
)

MAY_BEGIN = re.compile(
    "|".join(
        [
            *(re.escape(anchor) for shape in SHAPES for anchor in shape.anchors),
            *{rf"{re.escape(end)}\Z" for shape in SHAPES for end in shape.anchor_ends},
        ]
    )
)
"""An anchor anywhere, or the beginning of one at the end: without one, only shapes with a lead can begin."""

WITH_LEAD = tuple(shape for shape in SHAPES if shape.lead)
