"""Sections of the configuration: thresholds of recovery (`[recovery]`), hooks (`[hooks]`), number types."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

HookEvent = Literal["PreToolUse", "PostToolUse", "PostToolUseFailure"]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Number = Annotated[int, Field(ge=0)]
Wait = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class RecoverySettings(BaseModel):
    """Overrides of the chosen policy's thresholds (`[recovery]`); None leaves the policy's own value."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    attempts_limit: Count | None = None
    """Failures of one call at which the operator is asked (3)."""
    denials_limit: Number | None = None
    """Denials of one call at which the operator is asked; 0: never (3)."""
    streak_limit: Count | None = None
    """Failing iterations in a row that are allowed (3)."""
    confidence_start: Share | None = None
    """Confidence at the start of a run (0.3)."""
    confidence_up: Share | None = None
    """Gained by an iteration with a successful call (0.1)."""
    confidence_down: Share | None = None
    """Lost by an iteration in which all failed (0.1)."""
    confidence_cap: Share | None = None
    """Highest confidence (0.9)."""
    confidence_threshold: Share | None = None
    """CONCLUDE from here on, when nothing is uncertain (0.7)."""
    degrade_threshold: Share | None = None
    """A stall below this confidence is DEGRADE, else PIVOT (0.3)."""
    stall_threshold: Count | None = None
    """Iterations in a row without a success that make a stall (3)."""
    uncertainty_limit: Count | None = None
    """Open uncertainties that make DEGRADE (5)."""
    model_tries: Count | None = None
    """Calls in all for a transient fault of the model, before the next model (5)."""
    bad_output_retries: Number | None = None
    """Retries for empty or malformed output (2)."""
    shrinks: Number | None = None
    """Shrinkings of the window for a prompt that is too long (2)."""
    backoff_base: Wait | None = None
    """Upper bound of the first wait, in seconds; doubled with each try (1)."""
    backoff_cap: Wait | None = None
    """Upper bound of a wait that the provider did not ask for, in seconds (60)."""
    retry_after_cap: Wait | None = None
    """A provider that asks for a longer wait, in seconds, counts as out of retries (300)."""
    stuck_repeats: Annotated[int, Field(ge=2)] | None = None
    """The same call with the same outcome, this often, is a stuck pattern (4)."""
    breaker_failures: Count | None = None
    """Failures of a tool in a row that open its breaker (5)."""
    breaker_iterations: Count | None = None
    """Iterations for which an open breaker leaves its tool out (3)."""

    def overrides(self) -> dict[str, float | int]:
        """Those that are set, by name of the field in `recovery.policy.RecoveryPolicy`."""
        return self.model_dump(exclude_none=True)


class HookCommand(BaseModel):
    """One command: gets the event as JSON on stdin; `timeout` in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["command"] = "command"
    command: Annotated[str, Field(min_length=1)]
    timeout: Seconds = 60.0


class HookMatcher(BaseModel):
    """Commands for the tools whose name `matcher` matches (a regular expression; "" or `*`: all tools)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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


class HookSettings(BaseModel):
    """User-configured commands around tool calls (`[hooks]`), in the shape that Claude Code made familiar."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    pre_tool_use: tuple[HookMatcher, ...] = Field(default=(), alias="PreToolUse")
    post_tool_use: tuple[HookMatcher, ...] = Field(default=(), alias="PostToolUse")
    post_tool_use_failure: tuple[HookMatcher, ...] = Field(default=(), alias="PostToolUseFailure")

    def matchers(self, event: HookEvent) -> tuple[HookMatcher, ...]:
        """The matchers of one hook point."""
        match event:
            case "PreToolUse":
                return self.pre_tool_use
            case "PostToolUse":
                return self.post_tool_use
            case "PostToolUseFailure":
                return self.post_tool_use_failure
