"""`/permissions` with words behind it: `allow|ask|deny RULE [SCOPE]`, or `remove N`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.config.errors import ConfigError
from tui_agent.core.names import Decision
from tui_agent.permissions.offers import remarks
from tui_agent.permissions.rules import parse_rule
from tui_agent.session.rules import SCOPES, PlacedRule, SessionRules

if TYPE_CHECKING:
    from tui_agent.config.user_file import UserFile
    from tui_agent.session.session import Session

USAGE = "Write /permissions allow|ask|deny RULE [session|workspace|always], or /permissions remove N."


async def change_by_words(session: Session, file: UserFile, words: str) -> str:
    """Carry them out; says what was done. N is a place in `listed`, from 1. Raises `ValueError` for what is wrong."""
    rules = SessionRules(session, file)
    verb, _, rest = words.partition(" ")
    rest = rest.strip()
    try:
        if verb == "remove":
            placed = _numbered(rules.listed(), rest)
            await rules.take_back(placed)
            return f"Taken back: {placed.rule.decision} {placed.rule.text}"
        if verb not in list(Decision) or not rest:
            raise ValueError(USAGE)
        text, _, scope = rest.rpartition(" ")
        if not text or scope not in SCOPES:
            text, scope = rest, "session"
        await rules.make(text.strip(), Decision(verb), scope)
    except (ConfigError, OSError) as error:
        raise ValueError(str(error)) from error
    said = remarks(parse_rule(Decision(verb), text, ""))
    return f"{verb} {text.strip()}: holds in {SCOPES[scope]} from now on. {said}".rstrip()


def _numbered(listed: list[PlacedRule], number: str) -> PlacedRule:
    if not number.isdecimal() or len(number) > 9 or not 0 < int(number) <= len(listed):
        raise ValueError(
            f"/permissions numbers the rules, from 1 to {len(listed)}." if listed else "There is no rule."
        )
    return listed[int(number) - 1]
