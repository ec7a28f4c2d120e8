"""Writes docs/reference/SETTINGS.md from the settings: every key, its default, and what it means.

`python docs/write_configuration.py` writes the file, `--check` exits with 1 if it is not current. A test checks.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from typing import get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tui_agent.config.field_notes import field_notes
from tui_agent.config.layers import IN_A_PROJECTS_PROFILE, LIMITS, PERSONAL
from tui_agent.config.profiles import FallbackSettings, ModelParameters, ModelProfile, Price
from tui_agent.config.sections import (
    ConsoleSettings,
    EnvironmentSettings,
    HookSettings,
    NotifySettings,
    PermissionSettings,
    RecoverySection,
    SandboxSettings,
    TelemetrySettings,
    WebSettings,
)
from tui_agent.config.settings import Settings
from tui_agent.core.recovery.policy import RecoveryPolicy

TARGET = Path(__file__).parent / "reference" / "SETTINGS.md"

HEAD = """# Settings

<!-- Written by docs/write_configuration.py from the settings. Do not edit. -->

Every key, its default and its meaning. [CONFIGURATION.md](../CONFIGURATION.md) says where a setting may stand and which
place wins. Keys marked † are not for a checkout's `.agent-tui.toml`. Limits may be lower there than yours (or the
default), never higher: LIMITS.
"""


def page() -> str:
    """The whole page."""
    recovery = (
        "Parameters of the chosen policy. What is not set stays as the policy has it. The defaults below are\n"
        "those of `combined`. Where `off` is one of the values, `false` means the same (`cognition = false`), and\n"
        "`true` means the policy's own value. They hold in runs and in `replay --policy`. `analyze` ignores them,\n"
        "so that its tables can be compared. [RECOVERY.md](../RECOVERY.md) explains each rule."
    )
    hints = (
        "Hints of your own for failed calls. They come before the built-in ones. `pattern` is a regular\n"
        "expression, searched for in each line of the error; upper and lower case are the same. It has at most\n"
        "200 characters, no repeated group, and at most two of `*`, `+` and `{,}`. `hint` is what the model reads\n"
        "with the error:\n\n"
        "    [[recovery.hints]]\n"
        '    pattern = "relation .* does not exist"\n'
        "    hint = \"The database is empty: run 'make migrate' first.\""
    )
    files = (
        "Commands that run on a file of the workspace after the agent wrote it. The key is a glob over the file's\n"
        "path, or over its name where it has no `/`.\n\n"
        "- Formatters run first. The model is shown what they changed.\n"
        "- Then checkers run. What they find joins the result of the edit. Later edits show only what is new.\n"
        "- A list is a program with its arguments; `{path}` in one of them is the file. A line for the shell has the\n"
        "  path as `$1`.\n"
        "- `timeout` is in seconds (30). An edit does not fail when such a command is missing, hangs or fails.\n\n"
        "    [format]\n"
        '    "*.py" = ["ruff", "format", "-q", "{path}"]\n\n'
        "    [diagnostics]\n"
        '    "*.py" = ["ruff", "check", "-q", "--output-format", "concise", "{path}"]\n'
        '    "*.{ts,tsx}" = { command = ["npx", "tsc", "--noEmit", "--pretty", "false"], timeout = 60 }\n'
        '    "*.sh" = { shell = "shellcheck -f gcc \\"$1\\" | head -50" }'
    )
    hooks = (
        "Commands of your own that run before and after a call. Each event has a list of `{matcher, hooks}`.\n"
        "`matcher` is a regular expression for the tool's whole name; `*` or none means every tool. `hooks` is a\n"
        "list of `{type, command, timeout}`, where `type` is `command` and `timeout` is in seconds.\n"
        "[CONFIGURATION.md](../CONFIGURATION.md#hooks) explains what they are given and what they may answer."
    )
    profiles = (
        "A model under a name of your own, with its server and its parameters (those of `[parameters]` too). The\n"
        "name can be used in `--profile`, `/profile`, `/model`, `fallback_models`, `fallbacks`, `summary_model`\n"
        "and `[aliases]`. Headers, further fields and the key of a profile go to its own server only. Write no\n"
        "key into the file: name the variable that holds it.\n\n"
        '    [profiles.careful]\n    model = "anthropic/claude-sonnet-4-5"\n    reasoning_effort = "high"\n'
        '    max_tokens = 32000\n\n    [profiles.here]\n    model = "openai/qwen3"\n'
        '    api_base = "http://127.0.0.1:8080/v1"\n    temperature = 0.2\n    extra_body = { top_k = 20 }\n'
        '    extra_headers = { X-Team-Token = "${TEAM_TOKEN}" }\n\n'
        '    [aliases]\n    fast = "gemini/gemini-2.5-flash"'
    )
    fallbacks = (
        "Models to try after one kind of fault. They come before `fallback_models`, which are for faults that may\n"
        "pass. A fallback takes one call. Where a key, an account or a name is wrong, it takes the rest of the\n"
        "run."
    )
    parameters = (
        "For every model that is called. Those of a profile outweigh them. What a model does not support is left\n"
        "out, and a notice says so."
    )
    prices = (
        "What a model costs, in USD per million tokens. You need it for a model behind a gateway of your own, and\n"
        "where litellm's table is wrong. Limits on the cost (`max_cost`, `max_session_cost`) and every cost that\n"
        "is shown use it. A profile's own `price` outweighs it.\n\n"
        '    [prices."openai/qwen3"]\n    prompt = 0.2\n    completion = 0.8\n    cached = 0.05'
    )
    own = ModelProfile.model_fields.keys() - ModelParameters.model_fields.keys()
    parts = [
        HEAD.replace("LIMITS", ", ".join(f"`{key}`" for key in LIMITS)),
        "## Keys\n",
        _table(Settings),
        "## `[parameters]`\n",
        parameters + "\n",
        _table(ModelParameters),
        "## `[profiles.NAME]`\n",
        profiles + "\n",
        _table(ModelProfile, ModelParameters.model_fields, own - IN_A_PROJECTS_PROFILE),
        '## `[prices."MODEL"]` †\n',
        prices + "\n",
        _table(Price),
        "## `[fallbacks]`\n",
        fallbacks + "\n",
        _table(FallbackSettings),
        "## `[recovery]`\n",
        recovery + "\n",
        _table(RecoveryPolicy)
        + _table(RecoverySection, ["hints"], ["advisor"]).partition("|---|---|---|\n")[2],
        "### `[[recovery.hints]]`\n",
        hints + "\n",
    ]
    permissions = (
        "Rules of the form `tool` or `tool(pattern)`; [PERMISSIONS.md](../PERMISSIONS.md) explains them. The lists\n"
        "of all files and variables add up. A workspace's `.agent-tui.toml` may hold `ask` and `deny`, never\n"
        "`allow`.\n\n"
        "    [permissions]\n"
        '    allow = ["bash(pytest *)", "edit_file(src/**)", "web_fetch(docs.python.org)"]\n'
        '    ask   = ["bash(git push *)"]\n'
        '    deny  = ["bash(rm -rf *)", "read_file(**/.env)"]'
    )
    sandbox = (
        "What commands may do; [PERMISSIONS.md](../PERMISSIONS.md#the-sandbox) explains them.\n"
        '`sandbox = "require"` (`--sandbox`, `AGENT_TUI_SANDBOX`) sets the mode alone.'
    )
    environment = "Commands and hooks are given no variable that is named like a secret, except these."
    names = "".join(f"- `{field.alias}`\n" for field in HookSettings.model_fields.values())
    keys = (
        "Keys of the console, by the name of their command. An empty text takes a key away. What is left out\n"
        "keeps its default. A default key that you give to another action is taken from the first one. `/keys`\n"
        "lists all actions; there you press the new key, and are told which keys cannot be used. The replay's\n"
        "keys (`replay-play`, `replay-error`, …) may be letters. The keys of cards are fixed, so that nobody\n"
        "allows something by habit. The keys of lists, panes and texts are fixed too.\n\n"
        '    [keys]\n    diff = "f11"\n    step = "alt+s"\n    plan = ""\n    replay-error = "r"'
    )
    parts += ["## `[keys]` †\n", keys + "\n"]
    parts += ["## `[console]`\n", _table(ConsoleSettings)]
    parts += ["## `[web]` †\n", _table(WebSettings)]
    parts += ["## `[notify]` †\n", _table(NotifySettings)]
    parts += ["## `[telemetry]` †\n", _table(TelemetrySettings)]
    parts += ["## `[format]` †, `[diagnostics]` †\n", files + "\n"]
    parts += [
        "## `[permissions]`\n",
        permissions + "\n",
        _table(PermissionSettings, without=("allow", "ask", "deny")),
        "## `[sandbox]` †\n",
        sandbox + "\n",
        _table(SandboxSettings),
    ]
    parts += ["## `[environment]` †\n", environment + "\n", _table(EnvironmentSettings)]
    parts += ["## `[hooks]` †\n", hooks + "\n", names]
    return "\n".join(parts)


_SECTIONS = {
    "recovery",
    "hooks",
    "permissions",
    "sandbox",
    "environment",
    "parameters",
    "fallbacks",
    "format",
    "diagnostics",
    "keys",
    "prices",
    "web",
    "console",
    "name",
}
"""Keys with tables of their own."""


def _table(
    model: type[BaseModel], without: Collection[str] = (), personal: Collection[str] = PERSONAL
) -> str:
    rows = ["| key | default | |", "|---|---|---|"]
    notes = {name: note.replace("|", "\\|") for name, note in field_notes(model).items()}
    for name, field in model.model_fields.items():
        if name in _SECTIONS or name in without:
            continue
        key = {"print_only": "print", "passed": "pass"}.get(name, name)
        mark = " †" if key in personal else ""
        rows.append(f"| `{key}`{mark} | {_default(name, field)} | {_said(notes.get(name, ''), field)} |")
    return "\n".join(rows) + "\n"


def _default(name: str, field: FieldInfo) -> str:
    places = {"workspace": "here", "state_dir": "the platform's state folder"}
    if name in places:
        return places[name]
    if field.is_required():
        return "required"
    value = getattr(field.default, "value", field.default)
    if value is None or value == "" or (not value and isinstance(value, tuple | dict)):
        return "–"
    return f"`{str(value).lower() if isinstance(value, bool) else f'{value:g}' if isinstance(value, float) else value}`"


def _said(note: str, field: FieldInfo) -> str:
    kinds = get_args(field.annotation)
    choices = [each for kind in kinds for each in (kind, *get_args(kind)) if isinstance(each, str)]
    return f"{note} One of {', '.join(f'`{choice}`' for choice in choices)}." if choices else note


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(TARGET.read_text(encoding="utf-8") != page())
    TARGET.write_text(page(), encoding="utf-8")
