"""`agent-tui permissions`: every rule with its source, and the one that applies to a command."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Any

from tui_agent.cli.errors import UsageError
from tui_agent.cli.options import Parser, add_place_options, one_of, overrides, take_verb
from tui_agent.config.settings import Settings, load_settings
from tui_agent.core.names import APPROVALS, Decision
from tui_agent.core.tool_facts import COMMAND_TOOL
from tui_agent.permissions.findings import Judgement
from tui_agent.permissions.judge import Permissions
from tui_agent.permissions.offers import remarks
from tui_agent.session.sandboxes import tried_out
from tui_agent.store.kept_rules import KeptRules
from tui_agent.terminal_text import revealed_line, visible
from tui_agent.tools.registry import default_tools, subject_key

_EXAMPLE = """
agent-tui permissions
agent-tui permissions explain "cd src && pytest -q > report.txt"
agent-tui permissions explain --tool edit_file src/app.py
agent-tui permissions forget "bash(make)\""""

_VERBS = ("list", "explain", "forget")


def parser() -> Parser:
    """Options of `permissions`."""
    made = Parser(
        "permissions",
        "What may run unasked, what asks, and what never runs (docs/PERMISSIONS.md).\n\n"
        "list (the default): every rule and where it comes from\n"
        "explain COMMAND: which rule applies to each part of a command; with --tool for a path or an address\n"
        "forget RULE: take back what was allowed, made to ask or denied for good in this workspace",
        _EXAMPLE,
        usage="agent-tui permissions [list | explain COMMAND | forget RULE] [options]",
    )
    made.add_argument("subject", nargs="?", metavar="COMMAND|RULE", help="in quotes")
    made.add_argument("--tool", metavar="NAME", help="explain a call of this tool (default bash)")
    made.add_argument("--approve", type=one_of(APPROVALS), metavar="MODE", help="as with this mode")
    made.add_argument("--workspace", metavar="DIR", help="for this folder (default: here)")
    made.add_argument("--json", action="store_true", help="one JSON object, for programs")
    add_place_options(made)
    return made


def main(arguments: Sequence[str]) -> int:
    """Print the rules or a judgement. Raises `UsageError`."""
    words = list(arguments)
    advice = "Put the command in quotes after `explain`."
    verb = take_verb(words, _VERBS, "permissions", advice) or "list"
    namespace = parser().parse(words)
    if (namespace.subject is None) is (verb != "list"):
        needs = "takes no argument" if verb == "list" else "needs what it is about, in quotes"
        raise UsageError(f"agent-tui permissions {verb} {needs}.")
    settings = load_settings(overrides(namespace, "approve", "workspace", "state_dir"), namespace.config)
    match verb:
        case "explain":
            return _explain(settings, namespace)
        case "forget":
            return _forget(settings, namespace.subject)
        case _:
            return _list(settings, as_json=namespace.json)


def _list(settings: Settings, *, as_json: bool) -> int:
    kept = KeptRules(settings.state_dir, settings.workspace)
    rules = [*settings.permission_rules(), *kept.rules()]
    if as_json:
        listed = [{"decision": rule.decision, "rule": rule.text, "origin": rule.origin} for rule in rules]
        facts = {"workspace": str(settings.workspace), "approve": settings.approve, "rules": listed}
        sys.stdout.write(json.dumps(facts) + "\n")
        return 0
    width = max((len(rule.text) for rule in rules if len(rule.text) < 60), default=0)
    for rule in rules:
        sys.stdout.write(f"{rule.decision:<5}  {visible(rule.text):<{width}}  {visible(rule.origin)}\n")
        if said := remarks(rule):
            sys.stdout.write(f"       {visible(said)}\n")
    if not rules:
        sys.stdout.write("No rule is set.\n")
    sys.stdout.write(
        f"\nWhere no rule applies: {settings.approve.words} (approve = {settings.approve}, "
        f"{settings.sources['approve']}). Deny comes before ask, ask before allow.\n"
    )
    if kept.rules():
        sys.stdout.write(f"Rules that you made for this workspace are in {kept.path}.\n")
    return 0


def _forget(settings: Settings, text: str) -> int:
    kept = KeptRules(settings.state_dir, settings.workspace)
    taken = [decision for decision in Decision if kept.remove(text, decision)]
    if not taken:
        raise UsageError(
            f"agent-tui permissions: no rule {text!r} was made for good in {settings.workspace}.\n"
            "`agent-tui permissions list` shows what was; rules of a file are changed in the file."
        )
    for decision in taken:
        sys.stdout.write(f"taken back: {decision} {text}\n")
    return 0


def _explain(settings: Settings, namespace: argparse.Namespace) -> int:
    name = namespace.tool or COMMAND_TOOL
    tool = default_tools().get(name)
    arguments: dict[str, Any] = {subject_key(tool): namespace.subject}
    kept = KeptRules(settings.state_dir, settings.workspace)
    sandbox = asyncio.run(tried_out(settings))
    permissions = Permissions(
        [*settings.permission_rules(), *kept.rules()],
        settings.workspace,
        settings.approve,
        reads_free=settings.permissions.reads == "allow" and sandbox.is_closed,
        confined=sandbox.mechanism is not None,
    )
    effect, uses = ("command", None) if tool is None else (tool.effect, tool.uses)
    judgement = permissions.judge(name, effect, arguments, uses)
    would = permissions.suggestions(name, arguments, judgement)
    if namespace.json:
        findings = [
            {
                "part": one.subject,
                "decision": one.decision,
                "rule": one.rule.text if one.rule else None,
                "origin": one.rule.origin if one.rule else None,
                "why": one.why,
            }
            for one in judgement.findings
        ]
        facts = {"decision": judgement.decision, "parts": findings, "would_allow": would}
        sys.stdout.write(json.dumps(facts) + "\n")
    else:
        sys.stdout.write(_in_words(judgement, would))
    return 0


def _in_words(judgement: Judgement, would: Sequence[str]) -> str:
    meaning = {
        "allow": "it runs unasked",
        "ask": "the operator is asked; in `run` it is denied",
        "deny": "it never runs",
    }
    lines = [f"{judgement.decision}: {meaning[judgement.decision]}", ""]
    for one in judgement.findings:
        lines.append(f"  {one.decision:<5}  {revealed_line(one.subject, 90)}")
        lines.append(f"         by {visible(one.words())}")
    if would:
        lines += ["", f"It would run unasked with: allow = {json.dumps(list(would), ensure_ascii=False)}"]
    return "\n".join(lines) + "\n"
