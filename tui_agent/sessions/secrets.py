"""The shapes of well-known secrets: what they begin with, what they look like, and where one may be
unfinished.

Data for `redaction`, which alone decides what is done with them. A shape is tried only where one of its
anchors occurs, since finding a literal is many times faster than matching an expression. Shapes ask for what
prose and code do not have (a length, a digit), because masking a word of the user's source would mislead the
model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_WORD = r"[A-Za-z0-9_-]"
_NAMED = "(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE)"
_VALUE = r"[A-Za-z0-9+/=_.~@#%^*!-]"
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
    """What the rest of such a secret is made of."""
    clues: tuple[str, ...] = ()
    """Literals of which one is in every text that holds such a secret; `anchors` where none are given."""
    lead: bool = False
    """Something stands before the anchor that `unfinished` must see."""
    anchor_ends: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        ends = {anchor[:length] for anchor in self.anchors for length in range(1, len(anchor))}
        object.__setattr__(self, "clues", self.clues or self.anchors)
        object.__setattr__(self, "anchor_ends", tuple(sorted(ends, key=len, reverse=True)))

    def masked(self, text: str) -> str:
        """The text with every secret of this shape masked."""
        return self.pattern.sub(self._mask, text)

    def _mask(self, match: re.Match[str]) -> str:
        groups = match.groupdict()
        name = groups.get("name") or self.name
        return f"{groups.get('keep') or ''}[masked:{name}]"

    def span_over(self, text: str, position: int) -> int:
        """Where a whole secret begins that `position` would cut in two; `position` itself for none."""
        if any(clue in text for clue in self.clues):
            for match in self.pattern.finditer(text):
                if match.start() < position < match.end():
                    return match.start()
        return position

    def open_from(self, text: str) -> int:
        """Where a secret begins that may go on after the end of `text`; the length of `text` for none."""
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


_KEY_BODY = r"(?:[A-Za-z0-9+/=\s]|\\[nrt])"

SHAPES: tuple[Shape, ...] = (
    _token("api-key", "sk-", body=_WORD, least=16, digit=True),
    _token("github-token", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", least=20, clues=("gh",)),
    _token("github-token", "github_pat_", body="[A-Za-z0-9_]", least=20),
    _token("gitlab-token", "glpat-", body=_WORD),
    _token(
        "slack-token", "xoxb-", "xoxp-", "xoxa-", "xoxo-", "xoxr-", "xoxs-", "xoxe-", body=_WORD, least=10
    ),
    _token("aws-key-id", "AKIA", "ASIA", body="[A-Z0-9]"),
    _token("google-key", "AIza", body=_WORD, least=30),
    _token("google-token", "ya29.", body=_WORD, least=20),
    _token("stripe-key", "sk_live_", "rk_live_", "sk_test_", "rk_test_", clues=("k_live_", "k_test_")),
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
    Shape(
        "private-key",
        ("-----BEGIN ",),
        re.compile(
            r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----"
            rf"(?:(?:(?!-----).){{0,8000}}-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|{_KEY_BODY}*)",
            re.DOTALL,
        ),
        re.compile(
            r"-----BEGIN (?:[A-Z ]*|[A-Z ]*PRIVATE KEY(?: BLOCK)?-{1,5}(?:(?!-----END [A-Z ]+-----).)*)\Z",
            re.DOTALL,
        ),
        re.compile(rf"{_KEY_BODY}*(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----)?"),
    ),
    Shape(
        "bearer-token",
        ("Bearer ", "bearer ", "BEARER "),
        re.compile(r"(?P<keep>\b[Bb](?:earer|EARER) +)(?=[A-Za-z0-9._~+/-]*\d)[A-Za-z0-9._~+/-]{16,}=*"),
        re.compile(r"\b[Bb](?:earer|EARER) +[A-Za-z0-9._~+/=-]*\Z"),
        re.compile(r"[A-Za-z0-9._~+/=-]*"),
        ("earer ", "EARER "),
    ),
    Shape(
        "url-password",
        ("://",),
        re.compile(r"(?P<keep>://[^/\s:@\"'\\]*:)(?=[^/\s:@]*\d)(?![$<{\[])[^/\s:@\"'\\]{8,}(?=@)"),
        re.compile(r"://[^/\s:@\"'\\]*(?::[^/\s:@\"'\\]{0,200})?\Z"),
        re.compile(r"[^/\s:@\"'\\]*"),
    ),
    Shape(
        "variable",
        ("KEY=", "TOKEN=", "SECRET=", "PASSWORD=", "PASSWD=", "PASSPHRASE="),
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
        ("KEY=", "TOKEN=", "SECRET=", "PASS"),
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
"""An anchor anywhere, or the beginning of one at the end: where there is none, only shapes with a lead can begin."""

WITH_LEAD = tuple(shape for shape in SHAPES if shape.lead)
