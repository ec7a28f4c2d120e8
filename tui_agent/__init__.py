"""agent-tui: a console for AI agents that recover from their own errors.

`Recovery` is the engine alone, for other programs; importing it loads neither Textual nor litellm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tui_agent.library import Recovery

__version__ = "0.1.0"

__all__ = ["Recovery", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "Recovery":
        from tui_agent.library import Recovery

        return Recovery
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
