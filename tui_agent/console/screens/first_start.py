"""The first start: no model is chosen, and what was found is offered, with the demo and the themes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tui_agent.config.settings import load_settings
from tui_agent.console.screens.pick import PickScreen
from tui_agent.console.screens.theme_gallery import ThemeGallery
from tui_agent.frontend.commands.model_offers import (
    DEMO,
    THEME,
    Offer,
    as_written,
    found_now,
    used_last,
)
from tui_agent.frontend.lines.passages import Row

if TYPE_CHECKING:
    from tui_agent.console.screens.dashboard_screen import DashboardScreen
    from tui_agent.frontend.arguments import ConsoleArguments


async def choose_model(screen: DashboardScreen) -> ConsoleArguments | None:
    """The arguments with what the operator chose; None: nothing."""
    arguments = screen.arguments
    settings = await asyncio.to_thread(load_settings, arguments.overrides, arguments.config)
    found = await found_now(settings)
    last = await asyncio.to_thread(used_last, settings)
    if last is not None:
        found = [last, *(row for row in found if row.value != last.value)]
    found_any = bool(found)
    found.append(Row("demo", "a scripted model, real tools: no key, no network", DEMO))
    found.append(Row("theme", "choose the colours first", THEME))
    notification = 'No model is chosen yet. Keep one with `model = "…"` in config.toml, or --model NAME.'
    if not found_any:
        notification = (
            "No model is chosen, and none was found: no provider's key is set and no server answers on this "
            "machine.\nSet a key (OPENAI_API_KEY, ANTHROPIC_API_KEY, …) or start a server (ollama serve), and "
            "start again; look at the demo; or write a model and its server: openai/qwen3 http://127.0.0.1:8080/v1"
        )
    without = "leave" if len(screen.app.tabs) == 1 else "close"
    while (
        chosen := await screen.ask(PickScreen("Which model?", found, notification, as_written, without))
    ) == THEME:
        await screen.app.learn_themes()
        await screen.ask(ThemeGallery(screen.app.user_file(settings)))
    if chosen == DEMO:
        return arguments._replace(demo="recovery", task=None)
    if not isinstance(chosen, Offer):
        return None
    overrides = {**arguments.overrides, "model": chosen.model}
    if chosen.api_base:
        overrides["api_base"] = chosen.api_base
    return arguments._replace(overrides=overrides)
