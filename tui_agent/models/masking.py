"""Keeps keys out of messages: values of variables named like secrets, and well-known shapes of tokens.

Only for texts about model calls; events are masked when they are written into a journal.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from tui_agent.secret_names import named_like_a_secret

_SHAPES = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|ghp|gho|github_pat|AIza|AKIA)[-_]?[A-Za-z0-9_\-*]{12,}"
    r"|(?<=[Bb]earer )[A-Za-z0-9._\-]{8,}|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
)
_SHORTEST = 8
"""A shorter value is no key, and would mask ordinary words."""

MASK = "•••"


def masked(words: str, environment: Mapping[str, str] | None = None) -> str:
    """The text with every secret replaced by dots."""
    for name, value in (os.environ if environment is None else environment).items():
        if len(value) >= _SHORTEST and value in words and named_like_a_secret(name):
            words = words.replace(value, MASK)
    return _SHAPES.sub(MASK, words)
