"""Names of things that hold a secret: the one rule for variables, settings and assignments in text.

Commands do not get variables of such a name, their values never reach the disk, and a configuration file may
not hold a key of such a name.
"""

from __future__ import annotations

import re

_WORDS = frozenset({
    "KEY", "KEYS", "APIKEY", "TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWORDS", "PASSWD", "PASS", "PWD",
    "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "CREDS", "PAT",
})  # fmt: skip
_GLUED = ("APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIALS")
"""Endings that make a word one of those: PGPASSWORD."""
_COUNTED = frozenset({
    "MAX", "MIN", "CONTEXT", "PROMPT", "COMPLETION", "INPUT", "OUTPUT", "TOTAL", "CACHED", "REASONING", "REPLY",
    "NUM", "NEW",
})  # fmt: skip
"""Before TOKENS they speak of numbers of tokens of text."""

LAST_WORDS = ("KEY", *(word for word in _GLUED if word != "APIKEY"))
"""Common endings of secrets' names, for finding assignments in a text; each name still has to pass the rule.
"""


def named_like_a_secret(name: str) -> bool:
    """True if a thing of this name is taken to hold a secret: by the name's words, and by their endings."""
    upper = name.upper()
    if upper in {"PWD", "OLDPWD"}:
        return False
    words = re.split(r"[^A-Z0-9]+", upper)
    return any(
        (word in _WORDS or word.endswith(_GLUED)) and not (word == "TOKENS" and before in _COUNTED)
        for before, word in zip(["", *words], words, strict=False)
    )
