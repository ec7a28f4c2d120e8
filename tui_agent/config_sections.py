"""Sections of the configuration: thresholds of recovery (`[recovery]`), hooks (`[hooks]`), types of numbers."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

HookEvent = Literal["PreToolUse", "PostToolUse", "PostToolUseFailure"]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class RecoverySettings(BaseModel):
    """Overrides of the chosen policy's thresholds (`[recovery]`); None leaves the policy's own value."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    confidence_start: Share | None = None
    """Confidence at the start of a run (0.3)."""
    confidence_gain: Share | None = None
    """Added for an iteration with a successful call (0.1)."""
    confidence_loss: Share | None = None
    """Taken for an iteration in which every call failed (0.1)."""
    confidence_cap: Share | None = None
    """Confidence never rises above this (0.9)."""
    confidence_threshold: Share | None = None
    """CONCLUDE from here on, when nothing is uncertain (0.7)."""
    degrade_threshold: Share | None = None
    """A stall below this confidence degrades (0.3)."""
    stall_threshold: Count | None = None
    """Iterations in a row without a success that make a stall (3)."""
    uncertainty_limit: Count | None = None
    """Open uncertainties that degrade at once (5)."""
    ring_size: Count | None = None
    """Identical failures in a row that trip the breaker (5)."""
    attempts_limit: Count | None = None
    """Failures of one call before the operator is asked (3)."""
    streak_limit: Count | None = None
    """Failing iterations in a row that are still allowed (3)."""

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
