"""Every setting of the product, and how its value is found: option, environment, project, user, default.

`Settings(...)` made directly takes what it is given and defaults for the rest; `load_settings` reads all
sources and raises one `ConfigError` that names everything wrong in them. Provider keys are no settings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from platformdirs import user_config_path, user_state_path
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, field_validator

from tui_agent.config.errors import (
    ConfigError,
    Problem,
    missing_model,
    nearest,
    raise_for,
    secret_key,
    unknown_key,
)
from tui_agent.config.keys import key_problem, written
from tui_agent.config.layers import (
    LIMITS,
    PREFIX,
    PROJECT_FILE,
    Layer,
    environment_layer,
    file_layer,
    is_a_secret,
    options_layer,
    without_personal_keys,
)
from tui_agent.config.profiles import (
    Called,
    FallbackSettings,
    ModelParameters,
    ModelProfile,
    Price,
    Seconds,
    ShortName,
    address,
    behind,
    called,
    names_of,
)
from tui_agent.config.sections import (
    AgentSettings,
    ConsoleSettings,
    Count,
    EnvironmentSettings,
    FileCommands,
    HookSettings,
    NotifySettings,
    PermissionSettings,
    RecoverySettings,
    SandboxSettings,
    TelemetrySettings,
    WebSettings,
    listed_rules,
)
from tui_agent.core.names import (
    BUDGET_KEYS,
    LONGEST_WAIT,
    Approval,
    Decision,
    OnEscalation,
    OnLimit,
    OutputForm,
    PolicyName,
    ToolCallForm,
)
from tui_agent.core.recovery.policy import RecoveryPolicy
from tui_agent.disk import user_path
from tui_agent.permissions.rules import PermissionRule, parse_rule

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

APP = "agent-tui"

_QUOTED = re.compile(r"'([^']*)'")
_CHOICES = {"literal_error", "enum"}
"""Types of pydantic's errors whose message lists what is allowed, in quotes."""


class Settings(BaseModel):
    """Every option of the command line, as a key. Money in USD, times in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    model: str = ""
    """Name of the model, as litellm spells it (`openai/gpt-5`), of a profile or an alias, or `scripted:NAME`; empty:
    none chosen."""
    profile: str = ""
    """Name of the profile to use; options given beside it outweigh what it says."""
    api_base: str | None = None
    """Address of an OpenAI-compatible server; unset: the provider's own."""
    policy: PolicyName = "combined"
    """Recovery policy."""
    workspace: Path = Field(default_factory=Path.cwd)
    """Folder in which the tools work."""
    approve: Approval = Approval.ASK
    """plan: edits are refused, commands ask; ask: edits and commands ask; writes: edits run, commands ask; all: nothing
    asks."""
    max_iterations: Count = 50
    """Model calls with their tools before you are asked for more, or the run ends with a partial answer if
    nobody is there or an option named the number.
    """
    context_tokens: Annotated[int, Field(ge=256)] | None = None
    """Budget of the window in tokens; unset: the model's own, less room for the reply."""
    tool_calls: ToolCallForm = "auto"
    """How the model calls tools. native: by its API; text: one fenced call a reply; auto: as text if it
    cannot.
    """
    model_timeout: Seconds = 120.0
    """Longest silence of a model call in seconds, also within a reply. If it is not set, a server on this
    machine or its network has ten minutes or more for the first word, since processing the prompt can take
    that long.
    """
    max_cost: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """USD that a run may cost. Then it asks; with nobody there it ends with a partial answer. Unset: no limit."""
    max_session_cost: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """The same for all runs of a session together."""
    max_run_tokens: Count | None = None
    """Tokens of prompts and replies that a run may take."""
    max_session_tokens: Count | None = None
    """The same for all runs of a session together."""
    max_run_time: Seconds | None = None
    """Seconds for which a run may work; waits for you do not count."""
    max_session_time: Seconds | None = None
    """The same for all runs of a session together."""
    budget_warning: Annotated[float, Field(gt=0, le=1)] = 0.8
    """Share of a budget at which you are warned."""
    fallback_models: tuple[str, ...] = ()
    """Models to try, in order, when the chosen one cannot be reached."""
    on_limit: OnLimit | None = None
    """The way on when the model's limit of use is reached. wait: the run sleeps until it resets, and survives
    a restart; fallback: the fallback models; stop: the run ends. Unset: you are asked; with nobody there the
    fallback models are tried, then the run ends. A limit that resets within five minutes is waited for.
    """
    wait_at_most: Seconds = LONGEST_WAIT
    """Seconds that a run waits by itself for a limit to reset; what takes longer is no wait."""
    summary_model: str = ""
    """Model that writes summaries of long conversations, perhaps a cheap one; empty: the chosen one."""
    compact_at: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.85
    """Share of the window at which a summary replaces the older part of the conversation; 0: only `/compact` does."""
    theme: str = ""
    """Name of a theme; empty: the console's default."""
    glyphs: Literal["auto", "unicode", "ascii"] = "auto"
    """Signs and frames of the console. auto: ASCII if the locale (`LC_ALL`, `LC_CTYPE`, `LANG`) is not UTF-8.
    """
    motion: Literal["full", "reduced"] = "full"
    """reduced: nothing spins, flashes or blinks; `NO_MOTION` and `TEXTUAL_ANIMATIONS=none` in the environment say the
    same."""
    plain: bool = False
    """The console in lines: for screen readers and terminals that cannot be drawn on."""
    vim: bool = False
    """Vim keys in the prompt."""
    captions: bool = True
    """A demo explains the screen in captions."""
    keys: dict[Annotated[str, Field(pattern="^[a-z][a-z-]*$")], str] = {}
    """Keys of the console by the name of their command (`diff = "f11"`); empty: no key. `/keys` lists them all."""
    step: bool = False
    """Start paused before every step."""
    output: OutputForm = "text"
    """The form of what `run` prints."""
    on_escalation: OnEscalation | None = None
    """The answer that `run` gives when you would be asked; unset: `continue` under `combined`, `partial`
    under the presets.
    """
    agent: str = ""
    """Another agent that takes the steps in the console, by its name or as a command; empty: this program does."""
    advise: Literal["off", "note", "steer"] = "note"
    """What another agent is told of its failures. note: with the next prompt; steer: a turn that goes wrong is
    cancelled for it; off: nothing."""
    sub_agents: Annotated[int, Field(ge=0, le=16)] = 4
    """Sub-agents that work at the same time, at most; 0: the model has no `task` tool."""
    timeout: Seconds | None = None
    """Longest time for a whole `run`; unset: no limit."""
    command_timeout: Seconds = 120.0
    """Longest time for a command of the `bash` tool that names none itself."""
    state_dir: Path = Field(default_factory=lambda: user_state_path(APP, appauthor=False))
    """The folder in which sessions are kept."""
    mcp: bool = True
    """Start the MCP servers of `mcp.json` and `.mcp.json`; see MCP.md."""
    retention_days: Annotated[int, Field(ge=1)] | None = None
    """Days after which an unused session goes to the trash. After as many more it is removed. Unset: never."""
    speed: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)] = 1.0
    """How fast `replay` plays; 2 is twice as fast as it was."""
    at: Annotated[int, Field(ge=0)] | None = None
    """Number of the event at which `replay` opens."""
    run: Annotated[int, Field(ge=1)] | None = None
    """Which run of a file that holds many `replay` shows, from 1; unset: the first."""
    print_only: bool = Field(default=False, validation_alias=AliasChoices("print", "print_only"))
    """`replay` prints the transcript and opens no screen (key `print`)."""
    parameters: ModelParameters = ModelParameters()
    profiles: dict[ShortName, ModelProfile] = {}
    """Models under names of your own, with server and parameters."""
    aliases: dict[ShortName, Annotated[str, Field(min_length=1)]] = {}
    """Short names for models and profiles."""
    prices: dict[Annotated[str, Field(min_length=1)], Price] = {}
    """Prices of models, by their names as litellm spells them."""
    fallbacks: FallbackSettings = FallbackSettings()
    recovery: RecoverySettings = RecoverySettings()
    hooks: HookSettings = HookSettings()
    format: FileCommands = {}
    """Commands that format a file after it was written, by glob."""
    web: WebSettings = WebSettings()
    notify: NotifySettings = NotifySettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    console: ConsoleSettings = ConsoleSettings()
    diagnostics: FileCommands = {}
    """Commands that check a file after it was written, by glob; what they find joins the result of the edit."""
    agents: dict[ShortName, AgentSettings] = {}
    """Other agents under names of your own, for `agent`."""
    permissions: PermissionSettings = PermissionSettings()
    sandbox: SandboxSettings = SandboxSettings()
    environment: EnvironmentSettings = EnvironmentSettings()

    _sources: dict[str, str] = PrivateAttr(default_factory=dict)
    _rule_origins: dict[tuple[str, str], str] = PrivateAttr(default_factory=dict)
    _user_file: Path | None = PrivateAttr(default=None)

    @field_validator("fallback_models", mode="before")
    @classmethod
    def _split_at_commas(cls, value: Any) -> Any:
        return names_of(value)

    @field_validator("keys")
    @classmethod
    def _are_keys(cls, value: dict[str, str]) -> dict[str, str]:
        keys = {name: written(key) if key.strip() else "" for name, key in value.items()}
        for name, key in keys.items():
            if key and (problem := key_problem(key, name)):
                raise ValueError(f"must give {name} another key: {problem}")
        return keys

    @field_validator("api_base")
    @classmethod
    def _is_an_address(cls, value: str | None) -> str | None:
        return None if value is None else address(value)

    @field_validator("aliases")
    @classmethod
    def _lead_somewhere(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if behind(name, value) in value:
                raise ValueError(f"must not refer to themselves, as {name!r} does")
        return value

    @field_validator("workspace", "state_dir")
    @classmethod
    def _is_resolved(cls, value: Path) -> Path:
        return user_path(value).resolve()

    def budgets(self) -> dict[str, float]:
        """Those that are set beside `max_cost`, by their keys."""
        return {
            key: limit
            for key in BUDGET_KEYS
            if key != "max_cost" and (limit := getattr(self, key)) is not None
        }

    def called(self, name: str) -> Called:
        """Resolve the name of a profile, an alias or a model for a call."""
        return called(name, self.profiles, self.aliases, self.parameters, self.api_base, self.prices)

    @property
    def sources(self) -> dict[str, str]:
        """The source of each value: an option's, variable's or file's name, or `default`."""
        return {key: self._sources.get(key, "default") for key in sorted(known_keys())}

    @property
    def user_file(self) -> Path:
        """The user's own file: the one that was read (`--config`), or would be read if it were there."""
        return self._user_file or user_config_file()

    @property
    def asked_policy(self) -> bool:
        """This start names a policy: it holds for what was recorded too."""
        return self.origin("policy").startswith("--")

    @property
    def asked_steps(self) -> bool:
        """This start, or the program that makes the settings, names the number of steps: nobody is asked for more."""
        option = self.origin("max_iterations").startswith("--")
        return option or (not self._sources and "max_iterations" in self.model_fields_set)

    def origin(self, key: str) -> str:
        """The source of a key's value (`section.name` in a section); `default` if nothing sets it."""
        return self._sources.get(key, "default")

    def says(self, key: str) -> bool:
        """True if somebody chose the value of a key, even if it equals the default."""
        return self.origin(key) != "default" or (not self._sources and key in self.model_fields_set)

    def permission_rules(self) -> list[PermissionRule]:
        """The configured permission rules of all sources, each with its place."""
        return [
            parse_rule(decision, text, self._rule_origins.get((decision.value, text), "settings"))
            for decision in (Decision.DENY, Decision.ASK, Decision.ALLOW)
            for text in getattr(self.permissions, decision.value)
        ]

    def replaced(self, **changes: Any) -> Self:
        """These settings with some changed, checked like any other. Raises `ValidationError`."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        changed = type(self)(**{_key_of(name): value for name, value in (values | changes).items()})
        changed._sources.update(self._sources)
        changed._rule_origins.update(self._rule_origins)
        changed._user_file = self._user_file
        return changed


def _key_of(field_name: str) -> str:
    return "print" if field_name == "print_only" else field_name


def known_keys() -> dict[str, frozenset[str] | None]:
    """Every key of a configuration file; for a section, its own keys."""
    return {_key_of(name): _section_keys(field.annotation) for name, field in Settings.model_fields.items()}


def _section_keys(annotation: object) -> frozenset[str] | None:
    if not isinstance(annotation, type) or not issubclass(annotation, BaseModel):
        return None
    return frozenset(field.alias or name for name, field in annotation.model_fields.items())


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
        if isinstance(mode := layer.values.get("sandbox"), str):
            layer.values["sandbox"] = {"mode": mode}
    layers.append(Layer("default", {"workspace": cwd}))
    try:
        settings = Settings.model_validate(_merged(layers))
    except ValidationError as error:
        raise_for([*problems, *_problems_of(error, layers)])
        raise
    problems += _wrong_names(settings, layers)
    raise_for(problems)
    settings._sources.update(_origins(layers[:-1]))
    settings._user_file = Path(user.name)
    for layer in reversed(layers):
        table = layer.values.get("permissions")
        for decision, value in table.items() if isinstance(table, Mapping) else ():
            for text in _rule_texts(value) or ():
                settings._rule_origins[decision, text] = layer.place(f"permissions.{decision}")
    return _with_profile(settings, layers)


def _wrong_names(settings: Settings, layers: list[Layer]) -> list[Problem]:
    """A chosen profile that is not there, and names that stand for two things."""
    problems = []
    chosen, names = settings.profile, sorted(settings.profiles)
    if chosen and chosen not in settings.profiles:
        layer = _setter(layers, ["profile"])
        near = nearest(chosen, names)
        there = (
            f"did you mean {near!r}?"
            if near
            else f"there are {', '.join(names)}"
            if names
            else "there is none"
        )
        where = "default" if layer is None else layer.place("profile")
        key = "profile" if layer is not None and where == layer.name else ""
        problems.append(
            Problem(where, key, f"there is no profile {chosen!r} ({there}); [profiles.NAME] makes one")
        )
    for name in sorted(settings.profiles.keys() & settings.aliases.keys()):
        layer = _setter(layers, ["aliases", name])
        where = "default" if layer is None else layer.place("aliases")
        problems.append(Problem(where, f"aliases.{name}", "there is a profile of this name; choose another"))
    return problems


def _with_profile(settings: Settings, layers: list[Layer]) -> Settings:
    """The settings with the chosen profile as their model.

    What an option or a stronger variable says beside it holds for the profile too: `--profile main --model other`. The
    model of a project outweighs the whole profile of the user's file: the profile's key and headers are not for it.
    """
    if not settings.profile:
        return settings
    place = next(at for at, layer in enumerate(layers) if "profile" in layer.values)
    by_hand = layers[: min(max(place, 1), 2)]
    if any("model" in layer.values for layer in layers[2:place]) and all(
        "model" not in layer.values for layer in by_hand
    ):
        return settings.replaced(profile="")
    own: dict[str, Any] = {}
    for layer in reversed(by_hand):
        own.update(
            {key: layer.values[key] for key in ("model", "api_base", "model_timeout") if key in layer.values}
        )
        own.update(layer.values.get("parameters", {}))
    profile = settings.profiles[settings.profile]
    said = profile.model_dump(exclude_unset=True, exclude={"price"} if "model" in own else None)
    changed = ModelProfile(**{**said, **own}) if own else profile
    chosen = settings.replaced(
        model=settings.profile, profiles={**settings.profiles, settings.profile: changed}
    )
    chosen._sources["model"] = settings.sources["profile"]
    return chosen


def _defaults(keys: Iterable[str]) -> dict[str, Any]:
    """The defaults of settings, and of those in sections under `section.`."""
    fields = dict(Settings.model_fields)
    for section, model in (("recovery", RecoveryPolicy), ("parameters", ModelParameters)):
        fields |= {f"{section}.{name}": field for name, field in model.model_fields.items()}
    return {key: fields[key].default for key in keys}


def _user_layer(
    config: str | Path | None, cwd: Path, schema: dict[str, frozenset[str] | None]
) -> tuple[Layer, list[Problem]]:
    if config is not None:
        return file_layer(cwd / user_path(config), schema)
    file = user_config_file()
    return file_layer(file, schema) if file.exists() else (Layer(str(file)), [])


def _workspace_of(layers: list[Layer], cwd: Path) -> Path:
    for layer in layers:
        value = layer.values.get("workspace")
        if isinstance(value, str | Path):
            return (layer.base or cwd) / user_path(value)
    return cwd


def _anchor_paths(layer: Layer, cwd: Path) -> None:
    for key in ("workspace", "state_dir"):
        value = layer.values.get(key)
        if isinstance(value, str | Path) and str(value):
            layer.values[key] = (layer.base or cwd) / user_path(value)


def _merged(layers: list[Layer]) -> dict[str, Any]:
    """One value a key, the first layer's; sections are merged key by key."""
    merged: dict[str, Any] = {}
    for layer in reversed(layers):
        for key, value in layer.values.items():
            below = merged.get(key)
            if isinstance(value, Mapping) and isinstance(below, Mapping):
                value = {**below, **value}
            merged[key] = value
    if isinstance(merged.get("permissions"), Mapping):
        # Rules add up: a stronger source must not take away what another one forbids.
        merged["permissions"] = dict(merged["permissions"])
        for decision in Decision:
            tables = [layer.values.get("permissions") for layer in layers]
            given = [
                table[decision.value] for table in tables if isinstance(table, Mapping) and decision in table
            ]
            lists = [_rule_texts(value) for value in given]
            if None in lists:
                merged["permissions"][decision.value] = given[lists.index(None)]  # to be reported
            elif lists:
                texts = [text for texts in lists for text in texts or ()]
                merged["permissions"][decision.value] = list(dict.fromkeys(texts))
    return merged


def _rule_texts(value: object) -> list[str] | None:
    """A list of permission rules; None if the value is no such list."""
    try:
        texts = listed_rules(value)
    except ValueError:
        return None
    return texts if isinstance(texts, list) and all(isinstance(text, str) for text in texts) else None


def _origins(layers: list[Layer]) -> dict[str, str]:
    origins: dict[str, str] = {}
    for layer in reversed(layers):
        for key, value in layer.values.items():
            origins[key] = layer.place(key)
            inner = value if isinstance(value, Mapping) else {}
            origins.update({f"{key}.{name}": layer.place(f"{key}.{name}") for name in inner})
    return origins


_PLAIN = {
    "int_parsing": "must be a whole number",
    "float_parsing": "must be a number",
    "bool_parsing": "must be true or false",
}
"""Findings of pydantic that name its types, in words of people."""


def in_words(finding: ErrorDetails) -> str:
    """A sentence about what is wrong with a value, to stand behind its name."""
    said = finding["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)
    return _PLAIN.get(finding["type"], said)


def _problems_of(error: ValidationError, layers: list[Layer]) -> list[Problem]:
    """Pydantic's findings, each with the place that set the value."""
    problems = []
    for detail in error.errors(include_url=False, include_context=False):
        path = [str(part) for part in detail["loc"] if part != "function-after[_is_an_address(), str]"]
        layer = _setter(layers, path)
        if detail["type"] == "extra_forbidden" and layer is not None:
            problems.append(_unknown_within(layer, path, detail["input"]))
            continue
        says = in_words(detail)
        if layer is not None and isinstance(detail["input"], str | int | float) and not _may_be_secret(path):
            given = str(detail["input"])
            says += f"; it is {given[:60]!r}" if given else "; it is empty"
            near = nearest(given, _QUOTED.findall(detail["msg"])) if detail["type"] in _CHOICES else None
            says += f" (did you mean {near!r}?)" if near else ""
        key = ".".join(path)
        where = layer.place(key) if layer is not None else "default"
        # An option or a variable says its key by its own name.
        problems.append(Problem(where, key if layer is not None and where == layer.name else "", says))
    return problems


def _unknown_within(layer: Layer, path: list[str], value: Any) -> Problem:
    """A key that a table in a section does not have."""
    key = ".".join(path)
    if is_a_secret(path[-1], value):
        return secret_key(layer.place(path[0]), key)
    names = ModelProfile.model_fields if path[0] == "profiles" else ()
    return unknown_key(layer.place(path[0]), key, names)


def _may_be_secret(path: list[str]) -> bool:
    """A value that no message repeats: addresses hold passwords at times, headers tokens."""
    return bool({"api_base", "extra_headers", "extra_body", "api_key_variable"} & set(path))


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
    """The chosen model's name. Raises `ConfigError` with advice if none is chosen."""
    if not settings.model.strip():
        raise missing_model(os.environ if environ is None else environ)
    return settings.model


def require_workspace(settings: Settings) -> Path:
    """The workspace, once it is known to be a folder that can be read. Raises `ConfigError`."""
    folder = settings.workspace
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise ConfigError(
            f"The workspace {folder} {what}: the tools would have nothing to work in.\n"
            "Create it, or name another with --workspace DIR."
        )
    if not os.access(folder, os.R_OK | os.X_OK):
        raise ConfigError(
            f"The workspace {folder} cannot be read by you: the tools would see nothing of it.\n"
            f"Change its rights (ls -ld {folder} shows them), or name another with --workspace DIR."
        )
    return folder


def is_read_only(workspace: Path) -> bool:
    """True if questions about the workspace can be answered, but edits would fail."""
    return os.access(workspace, os.R_OK) and not os.access(workspace, os.W_OK)
