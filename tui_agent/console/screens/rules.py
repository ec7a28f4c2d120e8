"""The permission rules in force: the source, the coverage and the uses of each; to try out, add, change and
take back. Rules of a checkout's file, of variables and of options are shown here, and changed only at their
source.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual import work
from textual.binding import BindingType
from textual.content import Content

from tui_agent.config.errors import ConfigError
from tui_agent.console.looks.command_keys import bindings
from tui_agent.console.looks.hints import Hint
from tui_agent.console.looks.option_row import Option
from tui_agent.console.panes.cursor_list import CursorList
from tui_agent.console.screens.catalog import Catalog
from tui_agent.console.screens.field import FieldScreen, Judged, Selection, Values
from tui_agent.core.names import Decision
from tui_agent.frontend.lines.styled import Line, Span, fit, pad
from tui_agent.permissions.findings import Finding, Judgement
from tui_agent.permissions.offers import in_words, warning
from tui_agent.permissions.rules import PermissionRule, parse_rule
from tui_agent.quantities import counted
from tui_agent.session.rules import PlacedRule, SessionRules
from tui_agent.terminal_text import one_line, reveal, revealed_line

if TYPE_CHECKING:
    from tui_agent.config.user_file import UserFile
    from tui_agent.session.session import Session

DECISION_ROLES = {Decision.ALLOW: "ok", Decision.ASK: "warn", Decision.DENY: "error"}
SCOPES = (
    Option("session", "this session"),
    Option("workspace", "this workspace, for good"),
    Option("always", "everywhere, for good"),
)
PAUSE = 0.1
"""Seconds without a key before what was typed is judged."""


class RuleRow(NamedTuple):
    """A rule, and how often it was used in this session."""

    placed: PlacedRule
    uses: int
    speaks: bool = False
    """It decides about what was typed."""

    @property
    def rule(self) -> PermissionRule:
        return self.placed.rule

    @property
    def origin(self) -> str:
        """Its source, in a few words."""
        return one_line(self.placed.place if self.placed.scope else Path(self.rule.origin).name)


class RuleList(CursorList[RuleRow]):
    """Deny, ask, allow: in the order in which they count."""

    def sign(self, row: RuleRow) -> str:
        return "▸ " if row.speaks else "  "

    def draw_row(self, row: RuleRow, width: int, *, current: bool) -> Line:
        uses = f"{row.uses}×" if row.uses else ""
        origin = min(34, width // 3)
        room = max(8, width - 6 - origin - 6)
        return (
            Span(pad(str(row.rule.decision), 6), DECISION_ROLES[row.rule.decision]),
            Span(pad(revealed_line(row.rule.text), room), "bold" if row.speaks else ""),
            Span(f" {pad(fit(row.origin, origin - 2), origin - 1)}{uses:>5}", "muted"),
        )


def short(path: str) -> str:
    """A path with `~` for the home folder."""
    home = str(Path.home())
    return f"~{path.removeprefix(home)}" if path.startswith(f"{home}/") else path


class RulesScreen(Catalog[RuleRow, None]):
    """The typed call is tried out on the rules."""

    of_no_row = Catalog.of_no_row | {"ctrl+n"}

    BINDINGS: ClassVar[list[BindingType]] = bindings("rules")

    def __init__(self, session: Session, file: UserFile) -> None:
        super().__init__(
            "Permissions",
            "Try a command, or TOOL PATH: which rule applies to it?",
            RuleList(),
            (Hint("Enter", "edit", "enter"), Hint("^N", "add", "ctrl+n"), Hint("^D", "take back", "ctrl+d")),
        )
        self._session, self._rules = session, SessionRules(session, file)
        self._uses: Counter[str] = Counter()
        self._judged: Judgement | None = None

    def on_mount(self) -> None:
        approve = self._session.state.session.approve or self._session.settings.approve
        self.say(f"without a rule: {approve.words} ({approve})")
        self._count()

    @work(group="count")
    async def _count(self) -> None:
        self._uses = await asyncio.to_thread(self._session.permissions.uses)
        self._list()

    def typed(self, text: str) -> None:
        """Judge what was typed, once nobody types."""
        self._try(text)

    @work(group="try", exclusive=True)
    async def _try(self, text: str) -> None:
        if text.strip():
            await asyncio.sleep(PAUSE)
            self._judged = await asyncio.to_thread(self._session.permissions.judge, text)
        else:
            self._judged = None
        self._list()

    def _list(self, at: str = "") -> None:
        """All rules as they are now; the cursor goes to the one that decides, or to `at`."""
        speaking = [one.rule for one in self._judged.findings if one.rule] if self._judged else []
        rows = [
            RuleRow(each, self._uses[f"{each.rule.decision} {each.rule.text}"], each.rule in speaking)
            for each in self._rules.listed()
        ]
        wanted = (place for place, row in enumerate(rows) if (row.rule.text == at if at else row.speaks))
        self.put(rows, next(wanted, None))

    def describe(self) -> None:
        """The decision on the typed call, part by part; without one the rule under the cursor."""
        if self._judged is not None:
            self.known.update(judgement_in_words(self._judged))
        elif not self.list.rows:
            self.known.update(
                Content("No rule is set. ^N adds one. Lasting answers to approvals become rules, too.")
            )
        else:
            super().describe()

    def about(self, row: RuleRow) -> Content:
        words = reveal(f"{in_words(row.rule, whole=True)}. {warning(row.rule)}".rstrip())
        used = f"Used {counted(row.uses, 'time')} in this session. " if row.uses else ""
        origin = row.rule.origin
        own = row.placed.scope in {"session", "workspace"}
        where = f"{origin[0].upper()}{origin[1:]}." if own else f"From {short(origin)}."
        if not row.placed.scope:
            where += " Change it there."
        return Content.assemble(
            (revealed_line(row.rule.text, 400), "bold"), f": {words}\n", (used + where, "$muted")
        )

    def action_take(self) -> None:
        """Change the rule under the cursor."""
        row = self.list.chosen
        if row is not None and row.placed.scope:
            self._edit(row)
        elif row is not None:
            self._refuse(row)

    def action_add(self) -> None:
        self._edit(None)

    def _refuse(self, row: RuleRow) -> None:
        self.notify(f"This rule is from {row.origin}; change it there.", severity="warning", markup=False)

    @work(group="change")
    async def _edit(self, row: RuleRow | None) -> None:
        async def take(values: Values) -> str:
            text, decision, scope = values
            return await self._save(text.strip(), Decision(decision), scope, row)

        decisions = [Option(str(each), str(each)) for each in (Decision.ALLOW, Decision.ASK, Decision.DENY)]
        about = "bash(make *) · edit_file(src/**) · read_file(**/.env) · web_fetch(docs.python.org) · TOOL"
        selections = (
            Selection("", decisions, str(row.rule.decision) if row else "allow"),
            Selection("", SCOPES, row.placed.scope if row else "workspace"),
        )
        title = "Change a rule" if row else "Add a rule"
        value = row.rule.text if row else ""
        if await self.app.push_screen_wait(
            FieldScreen(title, about, value, selections, judged_rule, take, "TOOL or TOOL(PATTERN)")
        ):
            self._list()

    async def _save(self, text: str, decision: Decision, scope: str, before: RuleRow | None) -> str:
        """The fault; empty: the rule holds from now on."""
        try:
            if before is None:
                await self._rules.make(text, decision, scope)
            else:
                await self._rules.change(before.placed, text, decision, scope)
        except (ConfigError, ValueError, OSError) as error:
            return str(error)
        self._list(text)
        return ""

    @work(group="change")
    async def action_forget(self) -> None:
        """Take the rule under the cursor back."""
        row = self.list.chosen
        if row is None:
            return
        if not row.placed.scope:
            self._refuse(row)
            return
        try:
            await self._rules.take_back(row.placed)
        except (ConfigError, ValueError, OSError) as error:
            self.notify(str(error), severity="error", markup=False)
        else:
            self.notify(f"Taken back: {row.rule.decision} {revealed_line(row.rule.text, 80)}", markup=False)
        self._list()


def judged_rule(values: Values) -> Judged:
    """The coverage of a rule that is being written, or its fault."""
    text, decision, _ = values
    try:
        rule = parse_rule(Decision(decision), text, "")
    except ValueError as error:
        return Judged(
            reveal(str(error)) if text.strip() else "A rule is a tool, or a tool with a pattern.", right=False
        )
    return Judged(f"{rule.decision}: {reveal(in_words(rule, whole=True))}. {reveal(warning(rule))}".rstrip())


def judgement_in_words(judgement: Judgement) -> Content:
    """The decision on a call, and the source of it for each part."""
    meaning = {
        Decision.ALLOW: "it runs unasked",
        Decision.ASK: "you are asked",
        Decision.DENY: "it never runs",
    }
    colours = {Decision.ALLOW: "$text-success", Decision.ASK: "$text-warning", Decision.DENY: "$text-error"}
    colour = colours[judgement.decision]
    parts: list[Content] = [
        Content.assemble((f"{judgement.decision}: {meaning[judgement.decision]}", f"bold {colour}"))
    ]
    parts += [
        Content.assemble(
            (f"{one.decision:<5} ", colours[one.decision]),
            revealed_line(one.subject, 90),
            (f"  by {revealed_line(short(one.words()), 200)}", "$muted"),
        )
        for one in findings(judgement)
    ]
    return Content("\n").join(parts)


def findings(judgement: Judgement) -> Sequence[Finding]:
    """At most so many parts; those that decided come first."""
    return sorted(judgement.findings, key=lambda one: one.decision is not judgement.decision)[:6]
