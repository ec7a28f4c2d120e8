"""The permission rules that hold for a call: configured, kept for the workspace, allowed for the session.

What a rule means is in `permissions`; the operator is asked by the executor.
"""

from __future__ import annotations

import asyncio
import glob
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from tui_agent.core.events import Approval, Reach
from tui_agent.core.names import Decision
from tui_agent.core.state import RunState
from tui_agent.core.tool_facts import COMMAND_TOOL, Use
from tui_agent.permissions.findings import Finding, Judgement
from tui_agent.permissions.judge import Permissions
from tui_agent.permissions.losses import loss_of
from tui_agent.permissions.offers import in_short, offers
from tui_agent.permissions.reach import reach_of, shown_path
from tui_agent.permissions.rules import PermissionRule, exact_pattern, host_of, names_file, parse_rule
from tui_agent.permissions.uses import texts_in
from tui_agent.sandbox.mechanisms import Sandbox
from tui_agent.sandbox.obeyed import whose
from tui_agent.tools.tool import Tool, uses_of

Rules = tuple[tuple[str, ...], ...]

THIS_SESSION = "for this session"
"""The end of the origin of a rule that holds no longer."""


class Approvals:
    """Judges calls, and names the rules that an approval may leave behind."""

    def __init__(
        self,
        workspace: Path,
        configured: Sequence[PermissionRule],
        kept: Callable[[], Sequence[PermissionRule]],
        keep: Callable[[Sequence[str]], None],
        keep_everywhere: Callable[[Sequence[str]], None],
        reads: Literal["allow", "ask"] = "allow",
    ) -> None:
        """`kept` reads the workspace's rules, `keep` adds to them, `keep_everywhere` to the user's. `reads`: what
        becomes of commands that only read, in a sandbox without a network.
        """
        self._reads = reads
        self.sandbox = Sandbox()
        """The one that commands run in, as far as it is known."""
        self._workspace = workspace
        self.configured = tuple(configured)
        self._kept = kept
        self.keep = keep
        self.keep_everywhere = keep_everywhere
        self._in_force: tuple[tuple[object, ...], Permissions] | None = None
        """The rules in force and what they were made from."""
        self.asking = asyncio.Lock()
        """Held while the operator is asked about a call: one question at a time, also by lanes."""
        self.obeyed: Callable[[str], str] = obeyed_by
        """The program outside that obeys a file of the workspace by itself, by the file's relative path; ""
        if none does.
        """
        self._opened = time.time()
        """Files that are newer were made here."""
        self._agreed: dict[str, str] = {}
        """The digest of each tool of a server when it was first seen, or newly agreed to."""

    def judge(self, state: RunState, tool: Tool, arguments: Mapping[str, Any]) -> Judgement:
        """Decide on a call. Not for the event loop if `permissions.judge.looks_at_files`."""
        judgement = self._judged(self._permissions(state), tool, arguments)
        if judgement.decision is not Decision.DENY and state.session.approve is not Approval.ALL:
            judgement = self._of_its_own_kind(judgement, tool, arguments)
        identity = getattr(tool, "identity", "")
        if identity and self._agreed.setdefault(tool.name, identity) != identity:
            return self._of_a_changed_tool(judgement, tool.name)
        return judgement

    def _judged(self, permissions: Permissions, tool: Tool, arguments: Mapping[str, Any]) -> Judgement:
        says_it_reads = bool(getattr(tool, "says_it_reads", False))
        return permissions.judge(
            tool.name, tool.effect, arguments, uses_of(tool), says_it_reads=says_it_reads
        )

    def _of_its_own_kind(self, judgement: Judgement, tool: Tool, arguments: Mapping[str, Any]) -> Judgement:
        """A reason to ask in spite of a mode or a wide rule: a write to a file that programs outside obey by
        themselves, or a command that takes away files that git does not have. A rule that names just this
        lets it run.
        """
        for name, use in (uses_of(tool) or {}).items():
            texts = [text for text in texts_in(arguments.get(name)) if use in {Use.WRITES, Use.RUNS}]
            for text in texts:
                asking = (self._of_a_file if use is Use.WRITES else self._of_a_loss)(judgement, tool, text)
                if asking is not None:
                    return asking
        return judgement

    def _of_a_file(self, judgement: Judgement, tool: Tool, text: str) -> Judgement | None:
        path = self._within(text)
        why = self.obeyed(path) if path else ""
        if not why or any(names_file(one.rule, path) for one in judgement.findings if one.rule):
            return None
        said = f"{why}, so it is asked about by itself"
        return _asking(judgement, f"{tool.name} {path}", said, f"edit_file({glob.escape(path)})")

    def _of_a_loss(self, judgement: Judgement, _: Tool, command: str) -> Judgement | None:
        loss = None if _named(judgement, command) else loss_of(command, self._workspace, self._opened)
        exactly = f"{COMMAND_TOOL}({exact_pattern(command)})"
        return None if loss is None else _asking(judgement, command, str(loss), exactly)

    def _within(self, path: str) -> str:
        """A path relative to the workspace, with its links followed; "" outside of it."""
        root = os.path.realpath(self._workspace)
        try:
            full = os.path.realpath(os.path.join(root, path))  # noqa: PTH118 - as the tools join it
        except (OSError, ValueError):
            return ""
        return full[len(root) + 1 :] if full.startswith(f"{root}{os.sep}") else ""

    def agree(self, tool: Tool) -> None:
        """The operator let calls of this tool run, as the tool is now."""
        self._agreed[tool.name] = getattr(tool, "identity", "")

    def _of_a_changed_tool(self, judgement: Judgement, name: str) -> Judgement:
        """A tool that is another one than it was asks again; what your configuration says of its name holds."""
        why = "its server has changed it since it was allowed"
        findings = tuple(
            replace(one, decision=Decision.ASK, rule=None, why=why, suggestion=name)
            if one.rule is not None and one.decision is Decision.ALLOW and one.rule not in self.configured
            else one
            for one in judgement.findings
        )
        asks = any(one.decision is Decision.ASK for one in findings)
        return (
            Judgement(Decision.ASK, findings) if asks and judgement.decision is Decision.ALLOW else judgement
        )

    def may_read(self, state: RunState, path: str) -> bool:
        """True if no rule keeps a file of the workspace from being read."""
        return self._permissions(state).may_read(path)

    def suggestions(
        self, state: RunState, tool: Tool, arguments: Mapping[str, Any], judgement: Judgement
    ) -> tuple[str, ...]:
        """The rules that would let this call run; () if none would."""
        permissions = self._permissions(state)
        return permissions.suggestions(tool.name, arguments, judgement)

    def rules(self, state: RunState) -> list[PermissionRule]:
        """All rules in force, each with its source."""
        session = state.session
        own = [*sorted(session.narrowing), *((Decision.ALLOW, text) for text in sorted(session.rules))]
        return [*self.configured, *self._kept(), *_session_rules(own)]

    def reaches(self, tool: Tool, arguments: Mapping[str, Any]) -> tuple[Reach, ...]:
        """Say what a call reaches beyond the files of its folder, by the use of each argument. Blocks."""
        found: list[Reach] = []
        for name, use in (uses_of(tool) or {}).items():
            for text in texts_in(arguments.get(name)):
                if use is Use.RUNS:
                    found += reach_of(text, self._workspace)
                elif use is Use.SENDS:
                    found.append(Reach(kind="network", text=host_of(text) or text))
        return tuple(found)

    def place(self, tool: Tool) -> str:
        """Name the folder that a call is about, and for a command what keeps it there; "" if it is about none."""
        uses = set((uses_of(tool) or {}).values())
        if not uses & {Use.READS, Use.WRITES, Use.RUNS}:
            return ""
        folder = shown_path(self._workspace)
        if Use.RUNS not in uses:
            return folder
        return f"{folder} · {'no sandbox' if self.sandbox.mechanism is None else f'sandbox: {self.sandbox.limits}'}"

    def _permissions(self, state: RunState) -> Permissions:
        """Those in force, made again only if a rule or the mode has changed."""
        made_from = (
            self.configured,
            self._kept(),
            state.session.rules,
            state.session.narrowing,
            state.session.approve,
            self.sandbox.description,
        )
        known = self._in_force
        if known is None or known[0] != made_from:
            self._in_force = known = made_from, self._with(state)
        return known[1]

    def _with(self, state: RunState, more: Sequence[str] = ()) -> Permissions:
        rules = [*self.rules(state), *_session_rules((Decision.ALLOW, text) for text in more)]
        closed = self.sandbox.is_closed
        return Permissions(
            rules,
            self._workspace,
            state.session.approve or Approval.ASK,
            reads_free=self._reads == "allow" and closed,
            confined=self.sandbox.mechanism is not None,
        )

    def others(
        self, state: RunState, tool: Tool, arguments: Mapping[str, Any], suggested: Sequence[str]
    ) -> Rules:
        """Other sets of rules that would let this call run, from narrow to wide; () if none is suggested.

        Two that read alike are one choice.
        """
        if not suggested:
            return ()
        found: dict[tuple[str, ...], None] = {}
        for texts in offers(tool.name, arguments):
            if in_short(texts) != in_short(suggested):
                judgement = self._judged(self._with(state, texts), tool, arguments)
                judgement = self._of_its_own_kind(judgement, tool, arguments)
                if judgement.decision is Decision.ALLOW:
                    found[texts] = None
        return tuple(found)


def obeyed_by(path: str) -> str:
    """The program that obeys a file by its name, in words."""
    program = whose(path)
    return f"{program} obeys it by itself" if program else ""


def _named(judgement: Judgement, command: str) -> bool:
    """True if a rule allows just this command, or a program with its subcommand (`git clean *`)."""
    rules = [one.rule for one in judgement.findings if one.rule is not None]
    if any(rule.is_exactly(command) for rule in rules):
        return True
    literal = [[word for word in rule.words if not glob.has_magic(word)] for rule in rules]
    return len(judgement.findings) == 1 and any(len(words) > 1 for words in literal)


def _asking(judgement: Judgement, subject: str, why: str, suggestion: str) -> Judgement:
    """The judgement with one more finding, which asks, before the others."""
    finding = Finding(subject, Decision.ASK, None, why, suggestion=suggestion)
    # No rule that is offered for another part would cover this one, and the narrow one covers all.
    others = tuple(
        replace(one, suggestion=suggestion) if one.suggestion else one for one in judgement.findings
    )
    return Judgement(Decision.ASK, (finding, *others))


def _session_rules(texts: Iterable[tuple[Decision, str]]) -> Iterator[PermissionRule]:
    """Rules of the session; a journal may hold others that are none."""
    for decision, text in texts:
        with suppress(ValueError):
            yield parse_rule(decision, text, f"{decision.done} {THIS_SESSION}")
