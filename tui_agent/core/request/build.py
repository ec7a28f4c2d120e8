"""The messages of the next request: system prompt, the window of the history, and the recovery note at the end.

The note is ephemeral: it stands in this request only and never enters the history. Standing last, it leaves the prefix
unchanged, so that a provider's prompt cache holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_agent.core.names import Approval
from tui_agent.core.projections.history import Message, estimate_tokens
from tui_agent.core.recovery.note import tagged
from tui_agent.core.request import window
from tui_agent.core.request.tokens import overhead
from tui_agent.core.state import RunState

if TYPE_CHECKING:
    from tui_agent.core.request.coherence import Validator


PLANNING = (
    "Plan mode: read, search and think, and change nothing; edits are refused, and commands ask the operator. When you "
    "know what to do, answer with the plan: the steps, the files that each changes, how you will check the result, and "
    "what is still open. You carry it out only after the operator has approved it."
)
"""The end of every request in plan mode."""


@dataclass(frozen=True)
class BuiltRequest:
    """Messages in OpenAI's chat form; `tokens` is an estimate of all of them, the tools included."""

    messages: list[Message]
    tokens: int
    dropped_groups: int
    repairs: Mapping[str, int]


def build(state: RunState, note: str | None, validator: Validator) -> BuiltRequest:
    """The request that a model call would send now with `note`."""
    history = state.history
    groups = window.messages_in_window(history, state.run.number)
    stored, repairs = validator.messages(groups)
    messages: list[Message] = [{"role": "system", "content": state.run.system_prompt}, *stored]
    planning = PLANNING if state.session.approve is Approval.PLAN else ""
    last = "\n\n".join(part for part in (planning, tagged(note) if note else "") if part)
    if last:
        messages.append({"role": "user", "content": last})
    tokens = (
        overhead(state, note)
        + (estimate_tokens(planning) if planning else 0)
        + window.tokens_in_window(history, state.run.number)
    )
    dropped = history.cut.groups if history.cut is not None else 0
    return BuiltRequest(messages, tokens, dropped, repairs)
