"""The table of files that programs outside obey: whoever is named elsewhere as an agent has a row."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tui_agent.sandbox.git_settings import is_harmless
from tui_agent.sandbox.homes import SECRET_PLACES
from tui_agent.sandbox.obeyed import BY_NAME, TABLE, whose

ROOT = Path(__file__).resolve().parents[2]
NOT_IN_A_TREE = frozenset({
    # of other programs than agents, editors and tools, or at home alone
    ".ssh", ".gnupg", ".netrc", ".git-credentials", ".password-store", ".age", ".local", ".config", ".vault-token",
    ".pgpass", ".my.cnf", ".xauthority", "library", ".iceauthority", ".aws", ".azure", ".boto", ".kube", ".docker",
    ".dockercfg", ".oci", ".fly", ".netlify", ".vercel", ".wrangler", ".terraform.d", ".terraformrc", ".rclone.conf",
    ".s3cfg", ".databrickscfg", ".snowflake", ".kaggle", ".huggingface", ".cache", ".pypirc", ".pip", ".condarc",
    ".cargo", ".gem", ".bundle", ".m2", ".gradle", ".nuget", ".composer", ".sbt", ".ivy2", ".subversion",
    ".claude.json", ".codeium", ".vscode-server", ".mozilla", ".thunderbird", ".bash_history", ".zsh_history",
    ".zhistory", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history", ".sqlite_history",
    ".lesshst", ".viminfo",
})  # fmt: skip


def agents() -> list[str]:
    """The agents of the document about them."""
    rows = (ROOT / "docs" / "AGENTS.md").read_text("utf-8").partition("| --- |")[2].partition("\n\n")[0]
    return [row.split("|")[1].strip() for row in rows.splitlines()[1:]]


@pytest.mark.parametrize("agent", agents())
def test_every_agent_of_the_documents_has_a_row(agent: str) -> None:
    assert any(one.whose == agent for one in TABLE), agent


def test_every_place_that_is_known_elsewhere_has_a_row_or_is_at_home_alone() -> None:
    names = {place.removeprefix("~/").split("/")[0].casefold() for place in SECRET_PLACES if place[0] == "~"}
    assert sorted(names - NOT_IN_A_TREE - BY_NAME.keys()) == []


def test_every_file_that_our_own_code_reads_for_another_agent_has_a_row() -> None:
    """Folders of agents that importers, hooks, skills and servers look into."""
    found = set()
    for folder in ("agents", "formats", "tools", "config", "watch", "runtime"):
        for path in (ROOT / "tui_agent" / folder).rglob("*.py"):
            found |= set(re.findall(r'"(\.[a-z][a-z-]+)(?:/[^"]*)?"', path.read_text("utf-8")))
    known_agents = {
        name
        for name in found
        if re.search(r"claude|codex|gemini|cursor|copilot|vibe|opencode|kimi|qwen|kiro|roo$", name)
    }
    assert {".claude", ".codex"} <= known_agents
    assert sorted(name for name in known_agents if name not in BY_NAME) == []


PROTECTED_ELSEWHERE = {
    # code.claude.com/docs/en/permission-modes: what an agent does not write unasked
    ".vscode/tasks.json": "", ".idea/workspace.xml": "", ".cargo/config.toml": "", ".devcontainer/a.json": "",
    ".yarn/releases/yarn.cjs": "", ".mvn/jvm.config": "", ".claude/settings.json": "", ".envrc": "", ".npmrc": "",
    ".yarnrc": "", ".yarnrc.yml": "", ".pnpmfile.cjs": "", "bunfig.toml": "", ".bunfig.toml": "", ".bazelrc": "",
    ".bazelversion": "", ".bazeliskrc": "", ".devcontainer.json": "", ".mcp.json": "",
    "gradle/wrapper/gradle-wrapper.properties": "", ".mvn/wrapper/maven-wrapper.properties": "",
    ".git/config": "git", ".gitmodules": "git", ".husky/pre-commit": "hooks", ".pre-commit-config.yaml": "hooks",
    "lefthook.yml": "hooks", ".bashrc": "at home", ".gitconfig": "at home", ".claude.json": "at home",
    ".ripgreprc": "named by a variable", ".pnp.cjs": "an environment", ".pnp.loader.mjs": "an environment",
    "pyrightconfig.json": "work: `pyproject.toml` says the same",
    # what installers of servers, hooks and skills write for agents: add-mcp, ruler, skills, agent-config
    ".codex/config.toml": "", ".cursor/mcp.json": "", ".cursor/hooks.json": "", ".gemini/settings.json": "",
    ".github/hooks/a.json": "", ".vscode/mcp.json": "", ".zed/settings.json": "", "config/mcporter.json": "",
    "opencode.json": "", ".opencode/plugins/a.ts": "", "crush.json": "", ".crush.json": "", ".roo/mcp.json": "",
    ".agent/mcp_config.json": "", ".agents/hooks.json": "", ".amp/settings.json": "", ".codebuddy/settings.json": "",
    ".iflow/settings.json": "", ".junie/mcp/mcp.json": "", ".kilo/kilo.jsonc": "", "kilo.jsonc": "",
    ".pi/mcp.json": "", ".qwen/settings.json": "", ".qoder.json": "", ".tabnine/agent/settings.json": "",
    ".windsurf/hooks.json": "", ".hermes/config.yaml": "", ".devin/hooks.v1.json": "", ".vibe/hooks.toml": "",
    ".clinerules/hooks/a": "", ".amazonq/mcp.json": "", ".kiro/settings/mcp.json": "", "firebender.json": "",
    ".idx/mcp.json": "", ".bob/mcp.json": "", ".openhands/setup.sh": "", ".factory/mcp.json": "", ".aider.conf.yml": "",
    ".augment/settings.json": "", ".continue/config.json": "", ".trae/mcp.json": "", ".goose/skills/a/b.sh": "",
}  # fmt: skip
"""Files that others hold to be run later, with why they have no row here."""


@pytest.mark.parametrize(("path", "why"), PROTECTED_ELSEWHERE.items())
def test_what_others_hold_to_be_run_later_is_obeyed_or_has_a_reason(path: str, why: str) -> None:
    assert bool(whose(path)) != bool(why)


def test_every_row_says_who_reads_it_and_where_that_is_said() -> None:
    assert [one.name for one in TABLE if not one.whose or not re.search(r"\.\w+/|/", one.source)] == []
    names = [one.name.casefold() for one in TABLE]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("path", "program"),
    [
        (".envrc", "direnv"),
        ("deep/.ENVRC", "direnv"),
        (".vscode/tasks.json", "VS Code"),
        (".vscode/extensions.json", ""),
        ("a/.kiro/hooks/x.json", "Kiro"),
        (".idea/runConfigurations/a.xml", "JetBrains"),
        ("my.code-workspace", "VS Code"),
        ("x.pth", "Python"),
        ("env/lib/site-packages/x.pth", ""),
        ("conftest.py", ""),
        ("Makefile", ""),
        (".jj/repo/store/x", ""),
        (".jj/repo/config.toml", "Jujutsu"),
        (".github/mcp.json", "Copilot CLI"),
        ("a/.next-agent/hooks.json", "an agent"),
        (".next-agent/settings.json", "an agent"),
        ("next_agent/mcp.json", "an agent"),
        ("webhook/hooks.json", ""),
        ("app/settings.json", ""),
        ("node_modules/x/mcp.json", ""),
        ("deep/my.sublime-project", "Sublime Text"),
        (".cargo/config.toml", "Cargo"),
        (".cargo/registry/x", ""),
    ],
)
def test_whose_a_file_is(path: str, program: str) -> None:
    assert whose(path) == program


def test_a_setting_of_git_that_is_not_known_counts_as_one_that_names_a_program() -> None:
    """So new ones are found without anybody's doing: all keys that this git knows, but for those known as harmless."""
    done = subprocess.run(
        ["git", "help", "--config-for-completion"], capture_output=True, text=True, check=False
    )
    keys = [key.lower() for key in done.stdout.split() if "<" not in key and "*" not in key]
    if not keys:
        pytest.skip("this git does not list its settings")
    programs = ("core.hookspath", "core.sshcommand", "core.editor", "core.pager", "sequence.editor", "gpg.program",
        "diff.external", "credential.helper", "core.askpass", "include.path", "init.templatedir",
        "uploadpack.packobjectshook", "sendemail.tocmd", "web.browser", "interactive.difffilter")  # fmt: skip
    assert [key for key in programs if is_harmless(key, "./x")] == []
    suspicious = [
        key for key in keys if re.search(r"cmd|command|program|helper|editor|pager|hook|external|path$", key)
    ]
    assert len(suspicious) > 10
    quiet = {key for key in suspicious if key.startswith(("advice.", "color.", "column."))} | {
        "core.quotepath"
    }
    assert [key for key in suspicious if key not in quiet and is_harmless(key, "./x")] == []
