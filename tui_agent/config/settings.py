"""Every setting of the product, and how its value is found: option, environment, project, user, default.

`Settings(...)` made directly takes what it is given and defaults for the rest; `load_settings` reads all
sources and raises one `ConfigError` that names everything wrong in them. Provider keys are no settings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from platformdirs import user_config_path, user_state_path
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, field_validator

from tui_agent.config.errors import ConfigError, Problem, missing_model, nearest, raise_for
from tui_agent.config.layers import (
    LIMITS,
    PREFIX,
    PROJECT_FILE,
    Layer,
    environment_layer,
    file_layer,
    options_layer,
    without_personal_keys,
)
from tui_agent.config.sections import Count, FileCommands, HookSettings, RecoverySettings, Seconds
from tui_agent.core.events import Approval
from tui_agent.core.names import OnEscalation, OutputForm, PolicyName
from tui_agent.core.recovery.policy import RecoveryPolicy

APP = "agent-tui"

_QUOTED = re.compile(r"'([^']*)'")
_CHOICES = {"literal_error", "enum"}
"""Types of pydantic's errors whose message lists what is allowed, in quotes."""


class Settings(BaseModel):
    """Every option of the command line, as a key. Money in USD, times in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    model: str = ""
    """Name of the model, as litellm spells it (`openai/gpt-5`), or `scripted:NAME`; empty: none chosen."""
    api_base: str | None = None
    """Address of an OpenAI-compatible server; None: the provider's own."""
    policy: PolicyName = "combined"
    """Recovery policy."""
    workspace: Path = Field(default_factory=Path.cwd)
    """Folder in which the tools work."""
    approve: Approval = Approval.ASK
    """ask: writes and commands ask; writes: file edits run, commands ask; all: nothing asks."""
    max_iterations: Count = 50
    """Model calls with their tools before a run ends with a partial answer."""
    context_tokens: Annotated[int, Field(ge=256)] | None = None
    """Budget of the window in tokens; None: the model's own, less room for the reply."""
    model_timeout: Seconds = 120.0
    """Longest silence of a model call, also in mid-stream."""
    max_cost: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """What a run may cost before it ends with a partial answer; None: no limit."""
    fallback_models: tuple[str, ...] = ()
    """Models to try, in order, when the chosen one cannot be reached."""
    summary_model: str = ""
    """Model that writes summaries of long conversations, perhaps a cheap one; empty: the chosen one."""
    theme: str = ""
    """Name of a theme; empty: the console's default."""
    step: bool = False
    """Start paused before every iteration."""
    output: OutputForm = "text"
    """What `run` prints."""
    on_escalation: OnEscalation = "partial"
    """What `run` does where an operator would be asked."""
    timeout: Seconds | None = None
    """Longest time for a whole `run`; None: no limit."""
    command_timeout: Seconds = 120.0
    """Longest time for a command of the `bash` tool that names none itself."""
    state_dir: Path = Field(default_factory=lambda: user_state_path(APP, appauthor=False))
    """Where sessions are kept."""
    retention_days: Annotated[int, Field(ge=1)] | None = None
    """Sessions untouched for so many days go to the trash, from where they go after as many; None: never."""
    speed: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)] = 1.0
    """How fast `replay` plays; 2 is twice as fast as it was."""
    at: Annotated[int, Field(ge=0)] | None = None
    """Number of the event at which `replay` opens."""
    run: Annotated[int, Field(ge=1)] | None = None
    """Which run of a file that holds many `replay` shows, from 1; None: the first."""
    print_only: bool = Field(default=False, validation_alias=AliasChoices("print", "print_only"))
    """`replay` prints the transcript and opens no screen (key `print`)."""
    recovery: RecoverySettings = RecoverySettings()
    hooks: HookSettings = HookSettings()
    format: FileCommands = {}
    """Commands that format a file after it was written, by glob."""
    diagnostics: FileCommands = {}
    """Commands that check a file after it was written, by glob; what they find joins the result of the edit."""

    _sources: dict[str, str] = PrivateAttr(default_factory=dict)

    @field_validator("fallback_models", mode="before")
    @classmethod
    def _split_at_commas(cls, value: Any) -> Any:
        return (
            [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value
        )

    @field_validator("api_base")
    @classmethod
    def _is_an_address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("must be an address as http://127.0.0.1:8080/v1")
        return value

    @field_validator("workspace", "state_dir")
    @classmethod
    def _is_resolved(cls, value: Path) -> Path:
        return value.expanduser().resolve()

    @property
    def sources(self) -> dict[str, str]:
        """Where each value came from: an option's, variable's or file's name, or `default`."""
        return {key: self._sources.get(key, "default") for key in sorted(known_keys())}

    def replaced(self, **changes: Any) -> Self:
        """These settings with some changed, checked like any other. Raises `ValidationError`."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        changed = type(self)(**{_key_of(name): value for name, value in (values | changes).items()})
        changed._sources.update(self._sources)
        return changed


def _key_of(field_name: str) -> str:
    return "print" if field_name == "print_only" else field_name


def known_keys() -> dict[str, frozenset[str] | None]:
    """Every key of a configuration file; for a section, its own keys."""
    sections = {
        "recovery": frozenset(RecoverySettings.model_fields),
        "hooks": frozenset(str(field.alias) for field in HookSettings.model_fields.values()),
    }
    return {_key_of(name): sections.get(name) for name in Settings.model_fields}


def user_config_file() -> Path:
    """The user's own file, whether it exists or not."""
    return user_config_path(APP, appauthor=False) / "config.toml"


def load_settings(
    overrides: Mapping[str, Any] | None = None,
    config: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Settings:
    """The settings from all sources, the strongest first: `overrides` (options), environment, the workspace's
    `.agent-tui.toml`, the user's `config.toml` (or `config`), defaults.

    Raises `ConfigError` with every problem of every source.
    """
    environ = os.environ if environ is None else environ
    cwd = Path.cwd() if cwd is None else cwd
    schema = known_keys()
    options = options_layer(overrides or {})
    environment, problems = environment_layer(environ, schema)
    user, found = _user_layer(config or environ.get(f"{PREFIX}CONFIG"), cwd, schema)
    problems += found
    layers = [options, environment, user]
    project_file = _workspace_of(layers, cwd) / PROJECT_FILE
    if os.path.lexists(project_file):
        project, found = file_layer(project_file, schema)
        problems += found + without_personal_keys(project, user, _defaults(LIMITS))
        layers.insert(2, project)
    for layer in layers:
        _anchor_paths(layer, cwd)
    layers.append(Layer("default", {"workspace": cwd}))
    try:
        settings = Settings.model_validate(_merged(layers))
    except ValidationError as error:
        raise_for([*problems, *_problems_of(error, layers)])
        raise
    raise_for(problems)
    settings._sources.update(_origins(layers[:-1]))
    return settings


def _defaults(keys: Iterable[str]) -> dict[str, Any]:
    """The defaults of settings, and of the parameters of recovery under `recovery.`."""
    fields = Settings.model_fields | {
        f"recovery.{name}": field for name, field in RecoveryPolicy.model_fields.items()
    }
    return {key: fields[key].default for key in keys}


def _user_layer(
    config: str | Path | None, cwd: Path, schema: dict[str, frozenset[str] | None]
) -> tuple[Layer, list[Problem]]:
    if config is not None:
        return file_layer(cwd / Path(config).expanduser(), schema)
    file = user_config_file()
    return file_layer(file, schema) if file.exists() else (Layer(str(file)), [])


def _workspace_of(layers: list[Layer], cwd: Path) -> Path:
    for layer in layers:
        value = layer.values.get("workspace")
        if isinstance(value, str | Path):
            return (layer.base or cwd) / Path(value).expanduser()
    return cwd


def _anchor_paths(layer: Layer, cwd: Path) -> None:
    for key in ("workspace", "state_dir"):
        value = layer.values.get(key)
        if isinstance(value, str | Path) and str(value):
            layer.values[key] = (layer.base or cwd) / Path(value).expanduser()


def _merged(layers: list[Layer]) -> dict[str, Any]:
    """One value a key, the first layer's; sections are merged key by key."""
    merged: dict[str, Any] = {}
    for layer in reversed(layers):
        for key, value in layer.values.items():
            below = merged.get(key)
            if isinstance(value, Mapping) and isinstance(below, Mapping):
                value = {**below, **value}
            merged[key] = value
    return merged


def _origins(layers: list[Layer]) -> dict[str, str]:
    origins: dict[str, str] = {}
    for layer in reversed(layers):
        origins.update({key: layer.place(key) for key in layer.values})
    return origins


def _problems_of(error: ValidationError, layers: list[Layer]) -> list[Problem]:
    """Pydantic's findings, each with the place that set the value."""
    problems = []
    for detail in error.errors(include_url=False, include_context=False):
        path = [str(part) for part in detail["loc"] if part != "function-after[_is_an_address(), str]"]
        top = path[0] if path else ""
        layer = _setter(layers, path)
        says = detail["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)
        if layer is not None and isinstance(detail["input"], str | int | float) and top != "api_base":
            given = str(detail["input"])
            says += f"; it is {given[:60]!r}" if given else "; it is empty"
            near = nearest(given, _QUOTED.findall(detail["msg"])) if detail["type"] in _CHOICES else None
            says += f" (did you mean {near!r}?)" if near else ""
        key = ".".join(path)
        where = layer.place(key) if layer is not None else "default"
        # An option or a variable says its key by its own name.
        problems.append(Problem(where, key if layer is not None and where == layer.name else "", says))
    return problems


def _setter(layers: list[Layer], path: list[str]) -> Layer | None:
    """The strongest layer that holds the value at `path`."""
    for layer in layers:
        value: Any = layer.values
        for part in path[:2]:
            if not isinstance(value, Mapping) or part not in value:
                break
            value = value[part]
        else:
            return layer
    return next((layer for layer in layers if path and path[0] in layer.values), None)


def require_model(settings: Settings, environ: Mapping[str, str] | None = None) -> str:
    """The chosen model's name. Raises `ConfigError` with advice where none is chosen."""
    if not settings.model.strip():
        raise missing_model(os.environ if environ is None else environ)
    return settings.model


def require_workspace(settings: Settings) -> Path:
    """The workspace, once it is known to be a folder that can be read and written. Raises `ConfigError`."""
    folder = settings.workspace
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise ConfigError(
            f"The workspace {folder} {what}: the tools would have nothing to work in.\n"
            "Create it, or name another with --workspace DIR."
        )
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise ConfigError(
            f"The workspace {folder} cannot be written by you: edits and commands would fail there.\n"
            f"Change its rights (ls -ld {folder} shows them), or name another with --workspace DIR."
        )
    return folder
