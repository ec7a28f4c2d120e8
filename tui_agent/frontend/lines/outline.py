"""The next request in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.quantities import counted
from tui_agent.terminal_text import reveal

if TYPE_CHECKING:
    from tui_agent.runtime.operator import RequestOutline


def outline_line(outline: RequestOutline) -> str:
    """Iteration, model, size and tools in one sentence."""
    parts = [
        f"step {outline.iteration}",
        outline.model or "model not set",
        counted(outline.messages, "message"),
        f"~{outline.tokens:,} tokens",
    ]
    if outline.dropped_groups:
        parts.append(f"{counted(outline.dropped_groups, 'earlier step')} left out")
    parts.append(counted(len(outline.tools), "tool"))
    return " · ".join(reveal(part) for part in parts)
