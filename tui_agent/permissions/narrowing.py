"""Rules that narrow, against everything that a command could run: which of them forbids it or makes it ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tui_agent.core.names import Decision
from tui_agent.core.tool_facts import COMMAND_TOOL
from tui_agent.permissions.commands import SimpleCommand, tail_of
from tui_agent.permissions.coverage import resembles
from tui_agent.permissions.findings import Finding
from tui_agent.permissions.look import DEEPEST, Look
from tui_agent.permissions.programs import (
    hides_its_program,
    places_of_programs,
    scripts_within,
    writes_its_arguments,
)
from tui_agent.permissions.rules import READS, WRITES, PermissionRule, host_of


@dataclass(frozen=True)
class Reached:
    """A command that runs, or may be run by one that does."""

    command: SimpleCommand
    folders: tuple[str, ...] | None

    @cached_property
    def places(self) -> Sequence[int]:
        """Places in which its programs may stand."""
        return places_of_programs(self.command)

    @cached_property
    def writes(self) -> bool:
        """True if it may change the files that it is given."""
        return any(writes_its_arguments(self.command, place) for place in self.places)


def what_could_run(
    command: SimpleCommand, folders: tuple[str, ...] | None, look: Look
) -> tuple[list[Reached], bool]:
    """List the command with every one that it could run, and tell whether somewhere it is not known which."""
    reached: list[Reached] = []
    hidden = False
    read: set[str] = set()
    pending = [(command, folders, 0)]
    while pending:
        one, where, depth = pending.pop()
        look.budget.step(len(one.words))
        reached.append(Reached(one, where))
        hidden = hidden or hides_its_program(one)
        for script in scripts_within(one)[0]:
            if script in read:
                continue
            read.add(script)
            if depth == DEEPEST:
                hidden = True
                continue
            reading = look.read(script)
            hidden = hidden or reading.unread
            inner = look.folders(reading, where)
            pending += [(each, inner, depth + 1) for each in reading.commands]
    return reached, hidden


def rule_against(rules: Sequence[PermissionRule], reached: Sequence[Reached], look: Look) -> Finding | None:
    """Find the rule that forbids one of these commands or makes it ask."""
    uncertain: Finding | None = None
    for rule in rules:
        says = _says(rule, reached, look)
        if says == "yes":
            return Finding("", rule.decision, rule)
        if says == "perhaps" and uncertain is None:
            uncertain = Finding("", Decision.ASK, rule, "it is not known whether this rule covers it")
    return uncertain


def _says(rule: PermissionRule, reached: Sequence[Reached], look: Look) -> str:
    """Tell if a rule is about one of these: yes, perhaps, or ""."""
    perhaps = False
    for one in reached:
        look.budget.step(2)
        if rule.names(COMMAND_TOOL) and rule.pattern is not None:
            answer = _resembles(rule, one, look)
        elif rule.pattern is None or rule.covers_all:
            continue
        elif any(rule.names(tool) for tool in READS):
            answer = _touches(rule, one, look)
        elif any(rule.names(tool) for tool in WRITES):
            answer = _touches(rule, one, look) if one.writes else ""
        else:
            hosts = (host_of(word.text) for word in one.command.words[1:])
            answer = "yes" if any(host and rule.matches_domain(host) for host in hosts) else ""
        if answer == "yes":
            return answer
        perhaps = perhaps or answer == "perhaps"
    return "perhaps" if perhaps else ""


def _resembles(rule: PermissionRule, one: Reached, look: Look) -> str:
    """Tell if a rule about commands is about this one: yes, perhaps, or ""."""
    perhaps = False
    for place in one.places:
        look.budget.step()
        if not rule.may_begin_with(one.command.words[place]) and not one.command.assignments:
            continue
        look.budget.step(len(one.command.words))
        look.budget.need(len(one.command.words))
        answer = resembles(rule, tail_of(one.command, place) if place else one.command)
        if answer == "yes":
            return answer
        perhaps = perhaps or answer == "perhaps"
    return "perhaps" if perhaps else ""


def _touches(rule: PermissionRule, one: Reached, look: Look) -> str:
    """Tell if an argument is a path that the rule is about: yes, perhaps, or ""."""
    perhaps = False
    for word in () if one.command.program == "echo" else one.command.words[1:]:
        for names in look.names_of(word, one.folders):
            look.budget.step()
            if names is None:
                perhaps = True
            elif any(look.is_about(rule, name) for name in names):
                return "yes"
    return "perhaps" if perhaps else ""
