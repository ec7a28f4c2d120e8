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


@pytest.mark.parametrize("agent", [*agents(), "kimi-code", "qwen-code"])
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
