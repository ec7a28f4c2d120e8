"""What shells complete: every command, its options, and the values that they can have."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tui_agent.cli import COMMANDS, main
from tui_agent.cli.completions import SHELLS, options_of, script

COMPLETED = """
source {script}
for line in {lines}; do
    read -ra COMP_WORDS <<< "$line"
    [[ $line == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
    COMPREPLY=()
    _agent_tui
    echo "${{COMPREPLY[*]}}"
done
"""
LINES = {
    "agent-tui res": "resume",
    "agent-tui run --max-it": "--max-iterations",
    "agent-tui --policy c": "combined",
    "agent-tui run x --output json": "json jsonl",
    "agent-tui --model openai/x sessions sh": "show",
    "agent-tui hooks uni": "uninstall",
    "agent-tui --workspace ": "",
    "agent-tui --completions ": "bash zsh fish",
}


def test_bash_completes_commands_verbs_options_and_values(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    (tmp_path / "script").write_text(script("bash"))
    lines = " ".join(map(shlex.quote, LINES))
    text = COMPLETED.format(script=shlex.quote(str(tmp_path / "script")), lines=lines)
    done = subprocess.run([bash, "-c", text], capture_output=True, text=True, timeout=60, check=True)
    assert dict(zip(LINES, done.stdout.splitlines(), strict=True)) == LINES
    assert done.stderr == ""


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_gets_every_command_and_option_and_quotes_are_closed(shell: str) -> None:
    lines = script(shell).splitlines()
    read = " ".join(word for line in lines if not line.startswith("#") for word in shlex.split(line))
    bare = set(re.findall(r"[\w-]+", read))
    for command in ("", *COMMANDS):
        assert not command or command in bare
        for option in options_of(command):
            assert {option.name, option.name.lstrip("-")} & bare, f"{command} {option.name}"


def test_the_script_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--completions", "fish"]) == 0
    printed = capsys.readouterr().out
    assert printed == script("fish")
    assert "complete -c agent-tui -n '__fish_seen_subcommand_from run' -l max-cost -r -d" in printed
