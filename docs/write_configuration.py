"""Writes docs/CONFIGURATION.md from the settings: every key, its default, and what it means.

`python docs/write_configuration.py` writes the file, `--check` exits with 1 where it is not current. A test checks.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from field_notes import field_notes

from tui_agent.config.layers import LIMITS, PERSONAL
from tui_agent.config.sections import HookSettings
from tui_agent.config.settings import Settings
from tui_agent.core.recovery.policy import RecoveryPolicy

TARGET = Path(__file__).parent / "CONFIGURATION.md"

HEAD = """# Configuration

Made from the settings by `python docs/write_configuration.py`. Every key is an option (`--max-iterations`)
where a command takes it, a variable (`AGENT_TUI_MAX_ITERATIONS`; keys of a section with two underscores,
`AGENT_TUI_RECOVERY__STREAK_LIMIT`; lists by commas or as JSON) and a key in a file. The strongest wins:
option, variable, the workspace's `.agent-tui.toml`, your own `config.toml` (or `--config FILE`,
`AGENT_TUI_CONFIG`), default. Relative paths in a file are relative to that file.

Keys marked † cannot be set by a workspace's `.agent-tui.toml`: it comes with a checkout, perhaps a
stranger's. There, `approve` may only be `ask`, a model's name holds neither an address nor a script, and what
bounds the expense (LIMITS) may only be
lower than your own file (else the default) has it.
Provider keys stand in no file; they come from the providers' own variables (`OPENAI_API_KEY`, …).
"""


def page() -> str:
    """The whole page."""
    recovery = (
        "Parameters of the chosen policy. What is not set stays as the policy has it; the defaults below are those\n"
        "of `combined`. Where `off` is one of the values, `false` means the same, and `true` means as the policy has\n"
        "it: `cognition = false`."
    )
    hints = (
        "Hints of your own for failed calls, before the built-in ones. `pattern` is a regular expression that is\n"
        "looked for in each line of the error, without regard to case (at most 200 characters, no repeated group, at\n"
        "most two of `*`, `+` and `{,}`); `hint` is what the model is given with the error:\n\n"
        "    [[recovery.hints]]\n"
        '    pattern = "relation .* does not exist"\n'
        "    hint = \"The database is empty: run 'make migrate' first.\""
    )
    files = (
        "What runs on a file of the workspace after the agent wrote it, by a glob over its path (without a `/`: over\n"
        "its name). First the formatters; what they changed is shown to the model. Then the checkers; what they find\n"
        "joins the result of the edit, and later only what is new. A command that is missing, hangs or breaks fails\n"
        "no edit. A list is a program with its arguments, `{path}` in one of them is the file; a line for the shell\n"
        "has the path as `$1`. `timeout` is in seconds (30).\n\n"
        "    [format]\n"
        '    "*.py" = ["ruff", "format", "-q", "{path}"]\n\n'
        "    [diagnostics]\n"
        '    "*.py" = ["ruff", "check", "-q", "--output-format", "concise", "{path}"]\n'
        '    "*.{ts,tsx}" = { command = ["npx", "tsc", "--noEmit", "--pretty", "false"], timeout = 60 }\n'
        '    "*.sh" = { shell = "shellcheck -f gcc \\"$1\\" | head -50" }'
    )
    hooks = (
        "Lists of `{matcher, hooks}`; `matcher` is a regular expression over the tool's whole name (`*` or\n"
        "nothing: all), `hooks` a list of `{type, command, timeout}` with `command` as the type and the time in\n"
        "seconds."
    )
    parts = [
        HEAD.replace("LIMITS", ", ".join(f"`{key}`" for key in LIMITS)),
        "## Keys\n",
        _table(Settings),
        "## `[recovery]`\n",
        recovery + "\n",
        _table(RecoveryPolicy),
        "### `[[recovery.hints]]`\n",
        hints + "\n",
    ]
    names = "".join(f"- `{field.alias}`\n" for field in HookSettings.model_fields.values())
    parts += ["## `[format]` †, `[diagnostics]` †\n", files + "\n"]
    return "\n".join([*parts, "## `[hooks]` †\n", hooks + "\n", names])


def _table(model: type[BaseModel]) -> str:
    rows = ["| key | default | |", "|---|---|---|"]
    notes = field_notes(model)
    for name, field in model.model_fields.items():
        if name in {"recovery", "hooks", "format", "diagnostics", "name"}:
            continue
        key = "print" if name == "print_only" else name
        mark = " †" if key in PERSONAL else ""
        rows.append(f"| `{key}`{mark} | {_default(name, field)} | {_said(notes.get(name, ''), field)} |")
    return "\n".join(rows) + "\n"


def _default(name: str, field: FieldInfo) -> str:
    places = {"workspace": "here", "state_dir": "the platform's state folder"}
    if name in places:
        return places[name]
    value = getattr(field.default, "value", field.default)
    if value is None or value == "" or value == ():
        return "–"
    return f"`{str(value).lower() if isinstance(value, bool) else f'{value:g}' if isinstance(value, float) else value}`"


def _said(note: str, field: FieldInfo) -> str:
    choices = [choice for choice in get_args(field.annotation) if isinstance(choice, str)]
    return f"{note} One of {', '.join(f'`{choice}`' for choice in choices)}." if choices else note


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(TARGET.read_text(encoding="utf-8") != page())
    TARGET.write_text(page(), encoding="utf-8")
