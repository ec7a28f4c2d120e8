"""`agent-tui serve`: the console in a browser on this machine."""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

from tui_agent import installed
from tui_agent.cli.errors import UsageError
from tui_agent.cli.options import Parser, add_console_options, add_run_options, overrides, place
from tui_agent.config.settings import load_settings
from tui_agent.listening import refusal

_EXAMPLE = """
agent-tui serve --model openai/gpt-5
agent-tui serve --port 8800 --workspace ~/project
agent-tui serve --answers --port 8801"""

_VALUED, _FLAGS = {"--host", "--port", "--demo"}, {"--allow-remote", "--plain", "--answers"}
"""Options that are not passed on to the consoles."""


def parser() -> Parser:
    made = Parser(
        "serve",
        "Open the console in a browser. The address that is printed holds a token; nobody gets in without it.\n"
        "Each tab is a console of its own, started with the other options.",
        _EXAMPLE,
    )
    group = made.add_argument_group("options of the server")
    group.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on (default 127.0.0.1)"
    )
    group.add_argument(
        "--port", type=place, default=0, metavar="N", help="port to listen on (default: a free one)"
    )
    group.add_argument(
        "--allow-remote",
        action="store_true",
        help="let other machines reach it, without encryption",
    )
    group.add_argument(
        "--answers",
        action="store_true",
        help="serve no console, only the questions whose links your notices carry ([notify] link)",
    )
    group.add_argument("--demo", metavar="NAME", help="the built-in demo NAME in each tab")
    add_run_options(made)
    add_console_options(made)
    return made


def main(arguments: Sequence[str]) -> int:
    """Serve until Ctrl+C."""
    namespace = parser().parse(arguments)
    danger = (
        "whoever has a link answers its question"
        if namespace.answers
        else "whoever opens the console runs commands as you"
    )
    if why := refusal(namespace.host, allow_remote=namespace.allow_remote, danger=danger):
        raise UsageError(f"agent-tui serve: {why}")
    if namespace.port > 65_535:
        raise UsageError("agent-tui serve: a port is a number up to 65535.")
    if namespace.answers:
        return _answers(namespace)
    try:
        from tui_agent.console.serve import run_server
    except ModuleNotFoundError as missing:
        raise UsageError(
            f"agent-tui serve needs the package {missing.name}, which is not installed.\n"
            f"Install it with: {installed.adding('serve')}"
        ) from missing
    given = console_arguments(arguments)
    return run_server(
        ["demo", namespace.demo, *given] if namespace.demo else given, namespace.host, namespace.port
    )


def _answers(namespace: argparse.Namespace) -> int:
    """Serve the links of questions until Ctrl+C."""
    from tui_agent.agents.answer_page import AnswerServer, serve_answers
    from tui_agent.agents.notices import notices_folder, questions_in

    settings = load_settings(overrides(namespace, "state_dir"), namespace.config)
    base = settings.notify.link.rstrip("/")
    if not base:
        raise UsageError(
            "agent-tui serve --answers: your notices carry no links. Set the address under which you reach\n"
            'this server, as link = "https://HOST" below [notify] in your config.toml.'
        )
    address = urlsplit(base)
    port = namespace.port or (address.port or 80 if address.scheme == "http" else 0)
    family = socket.AF_INET6 if ":" in namespace.host else socket.AF_INET
    with socket.create_server((namespace.host, port), family=family) as listening:
        taken = listening.getsockname()[1]

        def ready() -> None:
            sys.stdout.write(
                f"Answers are taken at {namespace.host} port {taken}, for links that begin with {base}\n"
                "Whoever has a link can answer its question, once. Ctrl+C ends this.\n"
            )
            sys.stdout.flush()

        server = AnswerServer(base, questions_in(notices_folder(settings.state_dir)), time.time)
        asyncio.run(serve_answers(server, listening, ready))
    return 0


def console_arguments(arguments: Sequence[str]) -> list[str]:
    """The arguments without the server's own."""
    kept: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        name, equals, _ = argument.partition("=")
        if name in _VALUED:
            if not equals:
                next(rest, None)
        elif name not in _FLAGS:
            kept.append(argument)
    return kept
