"""Writes docs/CONFIGURATION.md from the settings: every key, its default, and what it means.

`python docs/write_configuration.py` writes the file, `--check` exits with 1 where it is not current. A test checks.
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
from tui_agent.config.sections import EnvironmentSettings, HookSettings, SandboxSettings, WebSettings
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
stranger's. There, `approve` may only be `ask`, and a model's name holds neither an address nor a script. What bounds
the expense may only be lower than in your own file (else than the default): LIMITS.
`/settings` in the console shows each with its value and where that comes from, and changes your own file.
Provider keys stand in no file; they come from the providers' own variables (`OPENAI_API_KEY`, …).
"""


def page() -> str:
    """The whole page."""
    recovery = (
        "Parameters of the chosen policy. What is not set stays as the policy has it; the defaults below are those\n"
        "of `combined`. Where `off` is one of the values, `false` means the same, and `true` means as the policy has\n"
        "it: `cognition = false`. They hold in runs and in `replay --policy`; `analyze` compares the policies as they\n"
        "come."
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
    profiles = (
        "A model under a name of your own, with its server and its parameters: those of `[parameters]` too. The name\n"
        "goes with `--profile`, `/profile`, `/model`, `fallback_models`, `fallbacks`, `summary_model`, `[aliases]`.\n"
        "Headers, further fields and the key of a profile go to its own server only. No key stands in the file: name\n"
        "the variable that holds it.\n\n"
        '    [profiles.careful]\n    model = "anthropic/claude-sonnet-4-5"\n    reasoning_effort = "high"\n'
        '    max_tokens = 32000\n\n    [profiles.here]\n    model = "openai/qwen3"\n'
        '    api_base = "http://127.0.0.1:8080/v1"\n    temperature = 0.2\n    extra_body = { top_k = 20 }\n'
        '    extra_headers = { X-Team-Token = "${TEAM_TOKEN}" }\n\n'
        '    [aliases]\n    fast = "gemini/gemini-2.5-flash"'
    )
    fallbacks = (
        "Models to try by the kind of a fault, before `fallback_models` (which are for those that may heal). A\n"
        "fallback takes one call; where a key, an account or a name is wrong, it takes the rest of the run."
    )
    parameters = (
        "For every model that is called; a profile's own outweigh them. What a model does not take is left out,\n"
        "and said."
    )
    prices = (
        "What a model costs, in USD per million tokens: for one behind a gateway of your own, or where litellm's\n"
        "table is wrong. Limits on the cost (`max_cost`, `max_session_cost`) and every cost that is shown go by it.\n"
        "A profile's own `price` outweighs it.\n\n"
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
        _table(RecoveryPolicy),
        "### `[[recovery.hints]]`\n",
        hints + "\n",
    ]
    permissions = (
        "Rules of the form `tool` or `tool(pattern)`; [PERMISSIONS.md](PERMISSIONS.md) explains them. The lists of\n"
        "all files and variables add up. A workspace's `.agent-tui.toml` may hold `ask` and `deny`, never `allow`.\n\n"
        "    [permissions]\n"
        '    allow = ["bash(pytest *)", "edit_file(src/**)", "web_fetch(docs.python.org)"]\n'
        '    ask   = ["bash(git push *)"]\n'
        '    deny  = ["bash(rm -rf *)", "read_file(**/.env)"]'
    )
    sandbox = (
        "What commands may do; [PERMISSIONS.md](PERMISSIONS.md#the-sandbox) explains them.\n"
        '`sandbox = "require"` (`--sandbox`, `AGENT_TUI_SANDBOX`) sets the mode alone.'
    )
    environment = "Commands and hooks are given no variable that is named like a secret, but for these."
    names = "".join(f"- `{field.alias}`\n" for field in HookSettings.model_fields.values())
    keys = (
        "Keys of the console, by the name of their command; an empty text takes a key away. `/keys` lists all\n"
        "actions, takes another key by its being pressed, and says which cannot be had. What is left out keeps its\n"
        "default; a default key that is given to another action is free. The replay's keys (`replay-play`,\n"
        "`replay-error`, …) may be letters. Fixed are the keys of cards, so that no habit allows or denies something\n"
        "else than it means, and those of lists, panes and texts, which are the same in all of them.\n\n"
        '    [keys]\n    diff = "f11"\n    step = "alt+s"\n    plan = ""\n    replay-error = "r"'
    )
    parts += ["## `[keys]` †\n", keys + "\n"]
    parts += ["## `[web]` †\n", _table(WebSettings)]
    parts += ["## `[format]` †, `[diagnostics]` †\n", files + "\n"]
    parts += [
        "## `[permissions]`\n",
        permissions + "\n",
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
