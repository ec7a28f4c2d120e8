"""The permission rules of a session as they can be changed: the place of each, and the changes themselves.

The meaning of a rule is in `permissions`. Rules of a checkout's file, of variables and of options are listed
here, and changed only at their source.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from tui_agent.core.names import Decision
from tui_agent.permissions.rules import PermissionRule, parse_rule
from tui_agent.runtime.approvals import THIS_SESSION

if TYPE_CHECKING:
    from tui_agent.config.user_file import UserFile
    from tui_agent.session.session import Session

SCOPES = {"session": "this session", "workspace": "this workspace", "always": "your config.toml"}
"""Places for a new rule with their names: the journal, the state folder, the user's own file."""


class PlacedRule(NamedTuple):
    """A rule in force; `scope` is the place in which it can be changed (`SCOPES`), "" if it cannot."""

    rule: PermissionRule
    scope: str

    @property
    def place(self) -> str:
        """In a few words."""
        return SCOPES.get(self.scope) or self.rule.origin


class SessionRules:
    """The rules in force in a session. Changes raise `ConfigError`, `ValueError`, `OSError`."""

    def __init__(self, session: Session, file: UserFile) -> None:
        self._session, self._rules, self._file = session, session.permissions, file

    def listed(self) -> list[PlacedRule]:
        """Deny, ask, allow: in the order in which they count. Reads the disk."""
        kept = frozenset(self._rules.kept.rules())
        placed = [PlacedRule(rule, self._scope(rule, kept)) for rule in self._rules.in_force()]
        for_good = {(each.rule.decision, each.rule.text) for each in placed if each.scope != "session"}
        shown = [
            each
            for each in placed
            # What was allowed for good was allowed for the session with it.
            if each.scope != "session" or (each.rule.decision, each.rule.text) not in for_good
        ]
        order = list(Decision)[::-1]
        return sorted(shown, key=lambda each: order.index(each.rule.decision))

    def _scope(self, rule: PermissionRule, kept: frozenset[PermissionRule]) -> str:
        if rule.origin.endswith(THIS_SESSION):
            return "session"
        if rule.origin in {str(self._file.path), str(self._session.settings.user_file)}:
            return "always"
        return "workspace" if rule in kept and rule.origin.startswith(rule.decision.done) else ""

    async def make(self, text: str, decision: Decision, scope: str) -> None:
        text = parse_rule(decision, text, "").text
        if self._rules.holds_secret(text):
            raise ValueError(
                "The rule holds a secret, which does not belong into a file. Put a * in its place."
            )
        if scope == "session":
            self._rules.change([text], decision=decision)
        elif scope == "workspace":
            await asyncio.to_thread(self._rules.kept.add, [text], decision)
        else:
            self._rules.use(await asyncio.to_thread(self._file.add_rules, decision, [text]))

    async def take_back(self, placed: PlacedRule) -> None:
        rule = placed.rule
        if not placed.scope:
            raise ValueError(f"This rule is from {rule.origin}; change it there.")
        session = self._session.state.session
        if rule.text in session.rules if rule.decision is Decision.ALLOW else placed.scope == "session":
            self._rules.change(removed=[rule.text], decision=rule.decision)
        if placed.scope == "workspace":
            await asyncio.to_thread(self._rules.kept.remove, rule.text, rule.decision)
        elif placed.scope == "always":
            self._rules.use(await asyncio.to_thread(self._file.drop_rule, rule.decision, rule.text))

    async def change(self, placed: PlacedRule, text: str, decision: Decision, scope: str) -> None:
        if (placed.rule.text, placed.rule.decision, placed.scope) != (text, decision, scope):
            await self.make(text, decision, scope)
            await self.take_back(placed)
