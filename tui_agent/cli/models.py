"""`agent-tui models`: the models that can be used now, by the names that `--model` takes."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from tui_agent.cli.options import Parser, add_place_options, overrides
from tui_agent.config.settings import load_settings
from tui_agent.models.catalogue import KnownModel
from tui_agent.models.discovery import Discovery, NamedModel, Provider, discover
from tui_agent.models.local_servers import ModelServer
from tui_agent.terminal_text import one_line

_EXAMPLE = """
agent-tui models
agent-tui models claude
agent-tui models --json | jq -r '.servers[].models[].name'"""

SHOWN = 6
"""Models of a provider, if not all are asked for."""


def parser() -> Parser:
    made = Parser(
        "models",
        "List the models that can be used now: the profiles and aliases of your configuration, servers on this\n"
        "machine (Ollama, llama.cpp, LM Studio, vLLM on their usual ports) and providers whose key is set, with\n"
        "context window and prices. No key is sent anywhere.",
        _EXAMPLE,
    )
    made.add_argument("name", nargs="?", metavar="WORD", help="list all names that contain WORD")
    made.add_argument("--json", action="store_true", help="one object on standard output, for programs")
    add_place_options(made)
    return made


def main(arguments: Sequence[str]) -> int:
    """Print the list; the exit code is 0 even if it is empty."""
    namespace = parser().parse(arguments)

    settings = load_settings(overrides(namespace), namespace.config)
    found = asyncio.run(discover(settings, os.environ))
    if namespace.json:
        sys.stdout.write(json.dumps(asdict(found)) + "\n")
        return 0
    lines = list(_lines(found, (namespace.name or "").lower()))
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _lines(found: Discovery, word: str) -> Iterator[str]:
    blocks = [
        *_named("Profiles", found.profiles, word),
        *_named("Aliases", found.aliases, word),
        *(block for server in found.servers if (block := _server(server, word))),
        *(block for provider in found.providers if (block := _provider(provider, word))),
    ]
    if found.chosen is not None and not word:
        yield from _rows([(f"Chosen: {_title(found.chosen)}", found.chosen.model, _note(found.chosen))])
        yield ""
    for block in blocks:
        yield from block
        yield ""
    if not blocks:
        yield from _nothing(word)
    elif any(provider.models for provider in found.providers) or found.profiles or found.aliases:
        yield "Context window in tokens; prices per million tokens, by your configuration or else litellm's table."


def _nothing(word: str) -> Iterator[str]:
    if word:
        yield f"No model that can be used now has {word!r} in its name; `agent-tui models` lists all."
        return
    yield "No model can be used now: there is no provider's key, no server on this machine and no profile."
    yield "Set a key (OPENAI_API_KEY, ANTHROPIC_API_KEY, …), start a server (ollama serve), or see `agent-tui demo`."


def _title(named: NamedModel) -> str:
    return named.name if named.name == named.model.name else f"{named.name} = {named.model.name}"


def _named(title: str, models: Sequence[NamedModel], word: str) -> list[list[str]]:
    kept = [each for each in models if word in _title(each).lower()]
    if not kept:
        return []
    notes = [_note(each) for each in kept]
    rows = [(_title(each), each.model, note) for each, note in zip(kept, notes, strict=True)]
    return [[title, *_rows(rows)]]


def _note(named: NamedModel) -> str:
    place = f"at {named.api_base}, " if named.api_base else ""
    return f"{named.lacks} is not set" if named.lacks else f"{place}called with {named.client}"


def _server(server: ModelServer, word: str) -> list[str]:
    models = [KnownModel(each.name, each.window) for each in server.models if word in each.name.lower()]
    if word and not models:
        return []
    how = f"--api-base {server.api_base}" if server.api_base else server.address
    return [
        _one_line(f"{server.make} (answers): {how}"),
        *_rows((model.name, model, "") for model in models),
        *([] if server.models else ["  it has no model yet"]),
    ]


def _provider(provider: Provider, word: str) -> list[str]:
    kept = [model for model in provider.models if word in model.name.lower()]
    if not kept and word and word not in provider.name:
        return []
    shown = kept if word else kept[:SHOWN]
    left = len(kept) - len(shown)
    return [
        f"{provider.name} ({provider.variable} is set; called with {provider.client})",
        *_rows((model.name, model, "") for model in shown),
        *([f"  … {left} more: agent-tui models {provider.name}"] if left else []),
        *(
            []
            if provider.models
            else [f"  litellm's table names none; any {provider.name}/NAME can be tried"]
        ),
    ]


def _rows(rows: Iterable[tuple[str, KnownModel, str]]) -> list[str]:
    made = [
        (
            _one_line(name),
            _window(model.window),
            _price(model.input, "in"),
            _price(model.cached, "cached"),
            _price(model.output, "out"),
            _one_line(note),
        )
        for name, model, note in rows
    ]
    widths = [max(len(row[column]) for row in made) for column in range(5)] if made else []
    return [
        "  " + "  ".join((row[0].ljust(widths[0]), *map(str.rjust, row[1:5], widths[1:]), row[5])).rstrip()
        for row in made
    ]


def _window(tokens: int | None) -> str:
    if tokens is None:
        return "–"
    return f"{tokens / 1e6:.3g}M" if tokens >= 1_000_000 else f"{tokens / 1e3:.0f}k"


def _price(amount: float | None, of: str) -> str:
    return "" if amount is None else f"${amount:g} {of}"


def _one_line(text: str) -> str:
    return one_line(text)
