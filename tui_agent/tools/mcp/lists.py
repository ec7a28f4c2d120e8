"""The lists of a server's offers: read page by page, and bounded. `offer` chooses those for a model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from tui_agent.terminal_text import one_line
from tui_agent.tools.mcp.offer import MOST_TOOLS, Described
from tui_agent.tools.mcp.status import PromptArgument, Resource, ServerPrompt

MOST_LISTED = 1_000
"""Resources, templates and prompts of each kind that are kept of one server."""
_PAGES = 50


@dataclass(frozen=True)
class Lists:
    tools: tuple[Described, ...] = ()
    resources: tuple[Resource, ...] = ()
    prompts: tuple[ServerPrompt, ...] = ()


async def listed(client: Client) -> Lists:
    """All that the server lists. Raises `MCPError` if it cannot list its tools: without the rest it is still
    good for those.
    """
    capabilities = client.server_capabilities
    tools = await _tools(client) if capabilities.tools is not None else ()
    resources: tuple[Resource, ...] = ()
    prompts: tuple[ServerPrompt, ...] = ()
    with suppress(MCPError):
        if capabilities.resources is not None:
            resources = await _resources(client)
    with suppress(MCPError):
        if capabilities.prompts is not None:
            prompts = await _prompts(client)
    return Lists(tools, resources, prompts)


async def _pages(get: Callable[[str | None], Awaitable[Any]], items: str, most: int) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await get(cursor)
        found += getattr(page, items)
        cursor = page.next_cursor
        if not cursor or len(found) >= most:
            break
    return found[:most]


async def _tools(client: Client) -> tuple[Described, ...]:
    listed = await _pages(lambda cursor: client.list_tools(cursor=cursor), "tools", MOST_TOOLS * 4)
    described = []
    for tool in listed:
        hints = tool.annotations
        read_only = bool(hints is not None and hints.read_only_hint)
        destructive = not read_only and (hints is None or hints.destructive_hint is not False)
        described.append(
            Described(
                tool.name, tool.description or tool.title or "", tool.input_schema, read_only, destructive
            )
        )
    return tuple(described)


async def _resources(client: Client) -> tuple[Resource, ...]:
    listed = await _pages(lambda cursor: client.list_resources(cursor=cursor), "resources", MOST_LISTED)
    templates: list[Any] = []
    with suppress(MCPError):  # many servers know no templates
        templates = await _pages(
            lambda cursor: client.list_resource_templates(cursor=cursor), "resource_templates", MOST_LISTED
        )
    return (
        *(_resource(str(item.uri), item) for item in listed),
        *(_resource(str(item.uri_template), item, template=True) for item in templates),
    )


def _resource(uri: str, item: Any, *, template: bool = False) -> Resource:
    about = one_line(item.title or item.name or "", 80), one_line(item.description or "", 200)
    return Resource(uri, *about, template=template)


async def _prompts(client: Client) -> tuple[ServerPrompt, ...]:
    listed = await _pages(lambda cursor: client.list_prompts(cursor=cursor), "prompts", MOST_LISTED)
    return tuple(
        ServerPrompt(
            item.name,
            one_line(item.description or item.title or "", 200),
            tuple(PromptArgument(each.name, bool(each.required)) for each in item.arguments or ()),
        )
        for item in listed
    )
