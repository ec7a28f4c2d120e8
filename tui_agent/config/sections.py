"""Sections of the configuration: parameters of recovery (`[recovery]`), commands on written files (`[format]`,
`[diagnostics]`), the web (`[web]`), hooks (`[hooks]`), and number types.

The parameters of recovery are those of the policies; here is only what makes them keys of a file.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo

from tui_agent.config.profiles import Seconds, names_of
from tui_agent.core.names import Decision, SandboxMode
from tui_agent.core.recovery.policy import RecoveryPolicy
from tui_agent.permissions.rules import parse_rule

HookEvent = Literal["PreToolUse", "PostToolUse", "PostToolUseFailure"]
Count = Annotated[int, Field(ge=1)]


_LONGEST_PATTERN = 200
_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]])*\]|\(\?[aimsux-]+\)|[*+]|\{\d*,\d*\}|.", re.DOTALL)
_UNBOUNDED = 2


class HintRule(BaseModel, frozen=True, extra="forbid"):
    """A hint for a failed call if a line of its error matches (`[[recovery.hints]]`)."""

    pattern: Annotated[str, Field(min_length=1, max_length=_LONGEST_PATTERN)]
    """A regular expression, without regard to case."""
    hint: Annotated[str, Field(min_length=1, max_length=500)]

    @field_validator("pattern")
    @classmethod
    def _takes_little_time(cls, value: str) -> str:
        try:
            re.compile(value, re.IGNORECASE)
        except re.error as error:
            raise ValueError(f"must be a regular expression ({error})") from error
        pieces = _PIECE.findall(value)
        repeats = [piece in "*+" or piece[:1] == "{" for piece in pieces]
        if any(repeat and before == ")" for before, repeat in zip(["", *pieces], repeats, strict=False)):
            raise ValueError("must not repeat a group, which could take for ever to match")
        if sum(repeats) > _UNBOUNDED:
            raise ValueError(
                f"must not hold more than {_UNBOUNDED} of *, + and {{,}}, which would take long to match"
            )
        return value


class RecoverySection(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """Parameters of the chosen policy that are one's own (`[recovery]`); None leaves the policy's value."""

    hints: tuple[HintRule, ...] = ()
    """Hints of your own for failed calls, before the built-in ones: a list of `{pattern, hint}`."""

    advisor: str = ""
    """Model that is asked once for another approach at a pivot; empty: none."""

    @field_validator("stuck_repeats", "stuck_alternation", check_fields=False)
    @classmethod
    def _fits_the_window(cls, value: int | None, info: ValidationInfo) -> int | None:
        window = info.data.get("stuck_window") or RecoveryPolicy().stuck_window
        if value is not None and value > window:
            raise ValueError(f"must be at most {window} (stuck_window), or it could never be seen")
        return value

    def overrides(self) -> dict[str, Any]:
        """Those that are set, for `recovery.policy.preset`."""
        return self.model_dump(exclude_none=True, exclude={"hints", "advisor"})


def _optional(parameter: FieldInfo) -> Any:
    """The type of a parameter as a key, with its bounds."""
    kind: Any = parameter.annotation
    if "off" in get_args(kind):
        return Annotated[kind | None, BeforeValidator(_switch)]
    bounded: Any = Annotated[(kind, *parameter.metadata)] if parameter.metadata else kind
    return bounded | None


def _switch(value: object) -> object:
    """A detector's switch: false is "off", and true is as the policy has it. Variables hold both as text."""
    match value.lower() if isinstance(value, str) else value:
        case False | "false":
            return "off"
        case True | "true":
            return None
    return value


if TYPE_CHECKING:
    RecoverySettings = RecoverySection
else:
    RecoverySettings = create_model(
        "RecoverySettings",
        __base__=RecoverySection,
        **{
            name: (_optional(field), None)
            for name, field in RecoveryPolicy.model_fields.items()
            if name != "name"
        },
    )


class FileCommand(BaseModel, frozen=True, extra="forbid"):
    """A command that runs on a file after it was written (`[format]`, `[diagnostics]`): a program with its
    arguments, `{path}` among them, or a line for the shell, which has the path as `$1`; `timeout` in seconds.
    """

    command: tuple[str, ...] = ()
    shell: str = ""
    timeout: Seconds = 30.0

    @model_validator(mode="before")
    @classmethod
    def _may_be_a_list(cls, value: Any) -> Any:
        match value:
            case str():
                raise ValueError('must be a list of arguments; a line for the shell is {shell = "…"}')
            case list() | tuple():
                return {"command": value}
        return value

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if bool(self.command) == bool(self.shell):
            raise ValueError("must have either a command, as a list of arguments, or a line for the shell")
        return self


FileCommands = dict[Annotated[str, Field(min_length=1, max_length=200)], FileCommand]
"""By glob: without a `/` it is matched against the file's name, at any depth."""


class SandboxSettings(BaseModel, frozen=True, extra="forbid"):
    """The sandbox of commands (`[sandbox]`; `sandbox = "require"` sets the mode alone)."""

    mode: SandboxMode = "auto"
    """auto: what works here; off: no sandbox; require: nothing starts without one."""
    network: bool = False
    """True: commands reach the network."""
    loopback: tuple[Annotated[int, Field(ge=1, le=65535)], ...] = ()
    """With a network: ports of this machine's services that commands reach, as `5432`. They always reach what they
    listen on themselves."""
    hide: tuple[str, ...] = ()
    """Further files and folders that commands cannot read. The usual places of keys and passwords are hidden anyway."""
    show: tuple[str, ...] = ()
    """Files and folders of your home that commands may read, beside the tools in it. All else there is hidden."""
    writable: tuple[str, ...] = ()
    """Files and folders outside the workspace that commands may write, as `~/.cache/uv`."""
    servers: Literal["workspace", "all", "off"] = "workspace"
    """Which MCP servers over stdio run in the sandbox, with a network: those that a workspace names, all, or none."""

    @model_validator(mode="before")
    @classmethod
    def _may_be_the_mode(cls, value: Any) -> Any:
        return {"mode": value} if isinstance(value, str) else value


class EnvironmentSettings(BaseModel, frozen=True, extra="forbid", populate_by_name=True):
    """The variables that commands and hooks are given (`[environment]`)."""

    passed: tuple[str, ...] = Field(default=(), alias="pass")
    """Variables that are named like secrets, and that commands and hooks are given."""


class AgentSettings(BaseModel, frozen=True, extra="forbid"):
    """Another agent that `--agent NAME` starts (`[agents.NAME]`)."""

    command: Annotated[str, Field(min_length=1)] | Annotated[tuple[str, ...], Field(min_length=1)]
    """Its command line, or its words."""
    env: dict[str, str] = {}
    """Variables beside those of your environment."""
    cwd: str = ""
    """The folder that it works in; empty: the workspace."""
    login: str = ""
    """The id of its way of logging in, if it has to be chosen."""
    options: dict[str, str] = {}
    """Values that its options begin with, by id, kind or name: `mode = "plan"`."""


class PermissionSettings(BaseModel, frozen=True, extra="forbid"):
    """Rules for calls that run unasked, that ask, and that never run (`[permissions]`), of the form
    `tool(pattern)`.
    """

    allow: tuple[str, ...] = ()
    """Calls that run unasked."""
    ask: tuple[str, ...] = ()
    """Calls that ask, even if a rule allows them."""
    deny: tuple[str, ...] = ()
    """Calls that never run, whatever else is set."""
    reads: Literal["allow", "ask"] = "allow"
    """allow: in a sandbox without a network, commands that are known to do nothing but read (`ls`, `git status`) run
    unasked; ask: they ask like any other."""

    @field_validator("allow", "ask", "deny", mode="before")
    @classmethod
    def _is_a_list(cls, value: object) -> object:
        return listed_rules(value)

    @field_validator("allow", "ask", "deny")
    @classmethod
    def _are_rules(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            parse_rule(Decision.ASK, text, "")
        return value


def listed_rules(value: object) -> object:
    """A list of rules as a variable gives it: as JSON, or one rule as it stands."""
    if not isinstance(value, str):
        return value
    if not value.lstrip().startswith("["):
        return [value]
    try:
        return json.loads(value)
    except ValueError as error:
        raise ValueError(f"must be a list of rules as JSON ({error})") from error


class WebSettings(BaseModel, frozen=True, extra="forbid"):
    """Bounds of `web_fetch` (`[web]`)."""

    private_hosts: tuple[str, ...] = ()
    """Hosts (`wiki.internal`, `localhost`) and networks (`10.1.0.0/16`) that may be fetched though they are private."""
    timeout: Seconds = 30.0
    """Longest time for a page, in seconds."""
    max_bytes: Annotated[int, Field(ge=1_000, le=20_000_000)] = 5_000_000
    """Bytes of a page that are read, unpacked."""

    @field_validator("private_hosts", mode="before")
    @classmethod
    def _split_at_commas(cls, value: Any) -> Any:
        return names_of(value)


class NotifySettings(BaseModel, frozen=True, extra="forbid"):
    """How you are called while you look elsewhere or are away (`[notify]`)."""

    console: tuple[Literal["title", "bell", "desktop"], ...] = ("title", "bell", "desktop")
    """Ways to call you while you look elsewhere: the terminal's title, the bell, a notification of the desktop."""
    webhook: str = ""
    """Address that gets each notice as JSON: `{"title": …, "text": …}`. Empty: none."""
    ntfy: str = ""
    """Topic of a server that speaks ntfy's protocol: `https://SERVER/TOPIC`. Empty: none. The variable `NTFY_TOKEN` may
    hold an access token.
    """
    replies: str = ""
    """Topic of such a server from which your answers are taken: each question has a code that holds once, and buttons
    that send it. Who can read the first topic can answer. Empty: no answers.
    """
    link: str = ""
    """Address under which you reach `agent-tui serve --answers`, as `https://HOST`: each question has a link there,
    which takes one answer. Who can read a notice can answer. Empty: no links.
    """
    patience: Seconds = 43_200.0
    """Longest time for an answer from the topic or a link, in seconds, if nobody is at the terminal."""
    command: tuple[str, ...] = ()
    """A program with its arguments, which finds the notice in `AGENT_TUI_TITLE`, `AGENT_TUI_TEXT` and
    `AGENT_TUI_LINK`. Empty: none.
    """

    @property
    def reaches_out(self) -> bool:
        """Somebody who is away is told."""
        return bool(self.webhook or self.ntfy or self.command)

    @field_validator("console", mode="before")
    @classmethod
    def _split_at_commas(cls, value: Any) -> Any:
        return names_of(value)

    @field_validator("link")
    @classmethod
    def _is_the_address_of_a_host(cls, value: str) -> str:
        if value and not re.fullmatch(r"https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?/?", value):
            raise ValueError("must be an address as https://HOST or http://HOST:PORT, in small letters")
        return value

    @field_validator("webhook", "ntfy", "replies")
    @classmethod
    def _is_an_address(cls, value: str, info: ValidationInfo) -> str:
        topic = info.field_name != "webhook"
        form = r"https?://[^\s/]+(/[^\s/]+)*/[A-Za-z0-9_-]{1,64}/?" if topic else r"https?://\S+"
        if value and not re.fullmatch(form, value):
            example = "https://SERVER/TOPIC" if topic else "https://HOST/PATH"
            raise ValueError(f"must be an address as {example}")
        return value


class TelemetrySettings(BaseModel, frozen=True, extra="forbid"):
    """Spans and metrics for a collector that speaks OTLP over HTTP (`[telemetry]`, extra `otel`)."""

    endpoint: str = ""
    """Address of the collector, as `http://127.0.0.1:4318`. Empty: nothing is sent."""
    content: bool = False
    """With the words of operator, model and tools, secrets masked; else names, figures and kinds of errors alone."""

    @field_validator("endpoint")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        if value and not re.fullmatch(r"https?://[^\s/@]+(/\S*)?", value):
            raise ValueError("must be an address as http://HOST:4318")
        return value


class ConsoleSettings(BaseModel, frozen=True, extra="forbid"):
    """How the console looks (`[console]`)."""

    panes: Literal["auto", "wide", "line"] = "auto"
    """Recovery panes at a start. auto: beside the conversation, slim until something fails; wide: always wide; line: in
    one line. F2 and `/panes` change it while the console is open, and with `auto` for the next start too."""


class HookCommand(BaseModel, frozen=True, extra="forbid"):
    """One command: gets the event as JSON on stdin; `timeout` in seconds."""

    type: Literal["command"] = "command"
    command: Annotated[str, Field(min_length=1)]
    timeout: Seconds = 60.0


class HookMatcher(BaseModel, frozen=True, extra="forbid"):
    """Commands for the tools whose name `matcher` matches (a regular expression; "" or `*`: all tools)."""

    matcher: str = ""
    hooks: tuple[HookCommand, ...] = ()

    @field_validator("matcher")
    @classmethod
    def _is_a_pattern(cls, value: str) -> str:
        if value not in {"", "*"}:
            try:
                re.compile(value)
            except re.error as error:
                raise ValueError(f"must be a regular expression ({error}), or * for every tool") from error
        return value

    def matches(self, tool: str) -> bool:
        """True if the pattern is all of the tool's name."""
        return self.matcher in {"", "*"} or re.fullmatch(self.matcher, tool) is not None


class HookSettings(BaseModel, frozen=True, extra="forbid", populate_by_name=True):
    """User-configured commands around tool calls (`[hooks]`), in the shape that Claude Code made familiar."""

    pre_tool_use: tuple[HookMatcher, ...] = Field(default=(), alias="PreToolUse")
    post_tool_use: tuple[HookMatcher, ...] = Field(default=(), alias="PostToolUse")
    post_tool_use_failure: tuple[HookMatcher, ...] = Field(default=(), alias="PostToolUseFailure")

    def commands(self, event: HookEvent, tool: str) -> list[HookCommand]:
        """The commands that hear of an event of a tool, in order."""
        matchers = {
            "PreToolUse": self.pre_tool_use,
            "PostToolUse": self.post_tool_use,
            "PostToolUseFailure": self.post_tool_use_failure,
        }
        return [command for one in matchers[event] if one.matches(tool) for command in one.hooks]

    @property
    def all_commands(self) -> list[HookCommand]:
        """The commands for every event and tool."""
        matchers = (*self.pre_tool_use, *self.post_tool_use, *self.post_tool_use_failure)
        return [command for one in matchers for command in one.hooks]
