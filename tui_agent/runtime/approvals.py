"""The permission rules that hold for a call: configured, kept for the workspace, allowed for the session.

What a rule means is in `permissions`; the operator is asked by the executor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tui_agent.core.events import Approval
from tui_agent.core.state import RunState
from tui_agent.permissions.judge import COMMAND_TOOL, Judgement, Permissions
from tui_agent.permissions.programs import PROGRAMS
from tui_agent.permissions.rules import EXACTLY, WRITES, Decision, Rule, parse_rule
from tui_agent.tools.tool import Tool

THIS_SESSION = "allowed for this session"


class Approvals:
    """Judges calls, and names the rules that an approval may leave behind."""

    def __init__(
        self,
        workspace: Path,
        configured: Sequence[Rule] = (),
        kept: Callable[[], Sequence[Rule]] = tuple,
        keep: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> None:
        """`kept` reads what "always" left for this workspace; `keep` adds to it."""
        self._workspace = workspace
        self._configured = tuple(configured)
        self._kept = kept
        self.keep = keep

    def judge(self, state: RunState, tool: Tool, arguments: Mapping[str, Any]) -> Judgement:
        """Decide on a call. Looks into the workspace: not for the event loop."""
        return self._permissions(state).judge(tool.name, tool.effect, arguments)

    def may_read(self, state: RunState) -> Callable[[str], bool]:
        """Which files of the workspace no rule keeps from being read."""
        return self._permissions(state).may_read

    def suggestions(
        self, state: RunState, tool: Tool, arguments: Mapping[str, Any], judgement: Judgement
    ) -> tuple[str, ...]:
        """The rules that would let this call run; () where none would."""
        permissions = self._permissions(state)
        return permissions.suggestions(tool.name, arguments, judgement)

    def _permissions(self, state: RunState) -> Permissions:
        rules = [*self._configured, *self._kept(), *_allowed_rules(sorted(state.session.rules))]
        return Permissions(rules, self._workspace, state.session.approve or Approval.ASK)

    @staticmethod
    def covers(rules: Sequence[str]) -> str:
        """What these rules allow, in words."""
        return "; ".join(map(in_words, rules))


def _allowed_rules(texts: Sequence[str]) -> Iterator[Rule]:
    """Rules of the session; a journal may hold others that are none."""
    for text in texts:
        with suppress(ValueError):
            yield parse_rule(Decision.ALLOW, text, THIS_SESSION)


def in_words(text: str) -> str:
    """What one allowing rule covers."""
    rule = parse_rule(Decision.ALLOW, text, "")
    pattern = rule.pattern or ""
    if rule.tool in WRITES:
        return (
            f"{text}: {'every file edit inside the workspace' if rule.covers_all else f'edits of {pattern}'}"
        )
    if rule.tool != COMMAND_TOOL or rule.covers_all:
        return f"{text}: every call of {rule.tool}{f' to {pattern}' if pattern else ''}"
    if pattern.startswith(EXACTLY):
        return f"{rule.tool}: exactly this call, again"
    name = pattern.removesuffix(" *")
    program = PROGRAMS.get(name)
    if program is not None and name != pattern:
        return f"{text}: `{name}` with {program.listed()}, on paths inside the workspace"
    return f"{text}: exactly this command, also beside others that are allowed"
