"""`agent-tui serve`: the console in a browser on this machine."""

from __future__ import annotations

from collections.abc import Sequence

from tui_agent import installed
from tui_agent.cli.errors import UsageError
from tui_agent.cli.options import Parser, add_console_options, add_run_options, place

_EXAMPLE = """
agent-tui serve --model openai/gpt-5
agent-tui serve --port 8800 --workspace ~/project"""

_VALUED, _FLAGS = {"--host", "--port", "--demo"}, {"--allow-remote", "--plain"}
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
    group.add_argument("--demo", metavar="NAME", help="the built-in demo NAME in each tab")
    add_run_options(made)
    add_console_options(made)
    return made


def main(arguments: Sequence[str]) -> int:
    """Serve until Ctrl+C."""
    namespace = parser().parse(arguments)
    try:
        from tui_agent.console.serve import refusal, run_server
    except ModuleNotFoundError as missing:
        raise UsageError(
            f"agent-tui serve needs the package {missing.name}, which is not installed.\n"
            f"Install it with: {installed.adding('serve')}"
        ) from missing
    why = refusal(namespace.host, allow_remote=namespace.allow_remote)
    if why:
        raise UsageError(f"agent-tui serve: {why}")
    if namespace.port > 65_535:
        raise UsageError("agent-tui serve: a port is a number up to 65535.")
    given = console_arguments(arguments)
    return run_server(
        ["demo", namespace.demo, *given] if namespace.demo else given, namespace.host, namespace.port
    )


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
