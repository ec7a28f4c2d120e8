"""Attacks on what rules go by: tools that do not say what they do, servers' tools, and options behind wide rules."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.adversarial.attack import Attack, attack, attacks
from tui_agent.core.names import Approval, Decision
from tui_agent.core.tool_facts import Effect, Use, Uses
from tui_agent.permissions import risky
from tui_agent.permissions.judge import Permissions
from tui_agent.permissions.offers import remarks
from tui_agent.permissions.rules import parse_rule
from tui_agent.permissions.uses import OF_RULES
from tui_agent.tools.registry import ToolRegistry, default_tools
from tui_agent.tools.tool import ToolContext, ToolOutput, schema, text, uses_of
from tui_agent.tools.workspace import Workspace


class Peek:
    """A tool that reads a file, as somebody might add one."""

    name: ClassVar[str] = "peek"
    description: ClassVar[str] = "Reads."
    parameters: ClassVar[dict[str, Any]] = schema("path", path=text(), note=text())
    effect: ClassVar[Any] = Effect.READ

    def preview(self, arguments: dict[str, Any], workspace: Workspace) -> str:
        return ""

    async def run(self, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        return ToolOutput("")


class Told(Peek):
    uses: ClassVar[Uses] = {"path": Use.READS, "note": Use.SAYS}


class Half(Peek):
    uses: ClassVar[Uses] = {"path": Use.READS}


class Wrong(Peek):
    uses: ClassVar[Any] = {"path": "reads", "note": Use.SAYS}


class Without(Told):
    effect: ClassVar[Any] = "read"


def rules(*, allow: str = "", deny: str = "") -> list[Any]:
    given = {Decision.ALLOW: allow, Decision.DENY: deny}
    return [
        parse_rule(decision, one, "test")
        for decision, texts in given.items()
        for one in texts.split("; ")
        if one
    ]


def judge(
    root: Path, tool: str, effect: str, arguments: dict[str, Any], uses: Uses, **given: str
) -> Decision:
    return Permissions(rules(**given), root).judge(tool, effect, arguments, uses).decision


@attack(
    "A tool that does not say what it does with its arguments, or with one of them, or in no known words",
    "It is not registered: not at the beginning, not by a server, not beside the others",
    fell="a new tool that reads by `path` was registered, and walked past every rule about files",
)
@pytest.mark.parametrize("kind", [Peek, Half, Wrong, Without])
def test_a_tool_that_does_not_say_what_it_does(kind: Any) -> None:
    with pytest.raises(ValueError, match="peek cannot be registered"):
        ToolRegistry([kind()])
    with pytest.raises(ValueError, match="peek cannot be registered"):
        ToolRegistry([]).put("somebody", [kind()])
    with pytest.raises(ValueError, match="peek cannot be registered"):
        default_tools().having(kind())
    assert ToolRegistry([Told()]).names == ("peek",)


def test_every_tool_means_by_its_arguments_what_rules_mean() -> None:
    tools = default_tools()
    for name, uses in OF_RULES.items():
        tool = tools.get(name)
        assert tool is not None
        said = {argument: use for argument, use in (uses_of(tool) or {}).items() if use is not Use.SAYS}
        assert said == dict(uses)


@attack(
    "A new tool that reads, writes, runs or sends under another name",
    "Rules about files, commands and domains hold for it as for ours",
    fell="rules went by the names of seven tools",
)
def test_rules_hold_for_a_new_tool(tmp_path: Path) -> None:
    read, write = {"where": Use.READS}, {"where": Use.WRITES}
    run, send = {"line": Use.RUNS}, {"to": Use.SENDS}
    deny = "read_file(**/.env); edit_file(*.lock); bash(rm *); web_fetch(*.evil.org)"
    for tool, effect, arguments, uses in (
        ("peek", "read", {"where": ".env"}, read),
        ("peek", "read", {"where": ["a", "b/.env"]}, read),
        ("poke", "write", {"where": "x.lock"}, write),
        ("shell", "command", {"line": "ls; rm x"}, run),
        ("get", "network", {"to": "https://a.evil.org/x"}, send),
        ("peek", "read", {"where": "a", "more": ".env"}, read),
    ):
        assert judge(tmp_path, tool, effect, arguments, uses, deny=deny) is Decision.DENY, arguments
    assert judge(tmp_path, "peek", "read", {"where": "a"}, read, deny=deny) is Decision.ALLOW
    assert judge(tmp_path, "poke", "write", {"where": "a"}, write, deny=deny) is Decision.ASK
    assert judge(tmp_path, "poke", "write", {"where": "a"}, write, allow="edit_file(**)") is Decision.ALLOW
    assert judge(tmp_path, "shell", "command", {"line": "make"}, run, allow="bash(make)") is Decision.ALLOW
    assert (
        judge(tmp_path, "shell", "command", {"line": "make"}, run, allow="bash", deny="shell")
        is Decision.DENY
    )


@attack(
    "A server's tool with a denied file, command or address among its arguments, however deep",
    "The rule that denies it holds, also where the tool is allowed for good",
    fell="only rules with the tool's own name were looked at",
)
def test_arguments_of_a_servers_tool(tmp_path: Path) -> None:
    uses: Uses = {"path": Use.ANYTHING, "options": Use.ANYTHING, "command": Use.ANYTHING}
    deny = "read_file(**/.env); bash(rm *); web_fetch(*.evil.org)"
    (tmp_path / "link").symlink_to(".env")
    for arguments in (
        {"path": ".env"}, {"path": f"{tmp_path}/.env"}, {"path": f"file://{tmp_path}/.env"}, {"path": "link"},
        {"path": "a/../.env"}, {"options": {"files": ["a", {"b": "src/.env"}]}}, {"command": "rm -rf x"},
        {"command": "ls && sudo rm x"}, {"options": "https://x.evil.org/"}, {"new": ".env"},
    ):  # fmt: skip
        assert (
            judge(tmp_path, "s__t", "command", arguments, uses, deny=deny, allow="s__*") is Decision.DENY
        ), arguments
    assert judge(tmp_path, "s__t", "command", {"path": "a"}, uses, deny=deny, allow="s__*") is Decision.ALLOW
    assert judge(tmp_path, "s__t", "command", {"path": "a"}, uses, deny=deny) is Decision.ASK


LATE = {
    "compilers", "linkers", "pandoc", "openssl", "pylint", "bazel", "gh", "tcpdump", "kubectl", "curl_engine",
    "npm_settings", "git_outside",
}  # fmt: skip
WIDE = tomllib.loads(Path(__file__).with_name("wide_rules.toml").read_text("utf-8"))


@attacks(
    *(
        Attack(
            f"wide_{name}",
            f"`bash({row['rule']})` is allowed; then {len(row['asks'])} ways to run another program or to write",
            "Each is asked for; what the program does otherwise runs",
            fell="all of them ran" if name in {"git", "npm"} | LATE else "",
            value=row,
        )
        for name, row in WIDE.items()
    )
)
def test_options_behind_a_wide_rule(row: Attack, tmp_path: Path) -> None:
    permissions = Permissions(rules(allow=f"bash({row.value['rule']})"), tmp_path)
    start = row.value["rule"].removesuffix(" *")
    for wanted, tails in ((Decision.ASK, row.value["asks"]), (Decision.ALLOW, row.value["runs"])):
        for tail in tails:
            judged = permissions.judge("bash", "command", {"command": f"{start} {tail}"})
            assert judged.decision is wanted, tail


@attack("A wide rule is written for a program that runs or writes by its arguments", "It says so at once")
def test_a_wide_rule_says_what_it_leaves_out() -> None:
    for pattern, word in (
        ("git *", "--upload-pack"),
        ("tar *", "--to-command"),
        ("rsync *", "-e"),
        ("npm run *", "--script-shell"),
    ):
        assert word in remarks(parse_rule(Decision.ALLOW, f"bash({pattern})", ""))
    for pattern in ("tar *", "awk *", "sed *", "python3 *", "sudo *", "bash *", "tar **"):
        assert "Mind: " in remarks(parse_rule(Decision.ALLOW, f"bash({pattern})", "")), pattern
    for rule in ("bash(ls *)", "bash(pytest *)", "bash(git status *)", "bash(tar tf a.tar)", "edit_file(**)"):
        assert remarks(parse_rule(Decision.ALLOW, rule, "")) == ""
    assert remarks(parse_rule(Decision.DENY, "bash(tar *)", "")) == ""
    assert all(risks.source for risks in risky.risks().values())


@attack("The rule itself names the option, or ends in `**`", "It holds: the operator wrote it")
def test_what_the_rule_itself_names(tmp_path: Path) -> None:
    for rule, command in (
        ("bash(git -c * status)", "git -c core.fsmonitor=./x status"),
        ("bash(tar --to-command=* *)", "tar --to-command=./x xf a.tar"),
        ("bash(git **)", "git -c a.b=c status"),
        ("bash(find . -exec *)", "find . -exec id ;"),
    ):
        judged = Permissions(rules(allow=rule), tmp_path).judge("bash", "command", {"command": command})
        assert judged.decision is Decision.ALLOW, rule
    nothing = Permissions(rules(allow="bash(git *)"), tmp_path, Approval.WRITES)
    assert nothing.judge("bash", "command", {"command": "git *"}).decision is Decision.ASK
