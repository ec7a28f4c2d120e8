"""`agent-tui acp`: our engine as an agent for editors, harnesses and scripts, over the Agent Client Protocol."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent import installed
from tui_agent.cli.errors import UsageError
from tui_agent.cli.options import Parser, add_run_options, overrides

if TYPE_CHECKING:
    from argparse import Namespace

_EXAMPLE = """
agent-tui acp --model openai/gpt-5 --approve ask     # as the command of an agent, in an editor's settings
agent-tui acp --login anthropic                      # in a terminal: a provider's key, into the system's keyring"""


def parser() -> Parser:
    made = Parser(
        "acp",
        "Serve an editor, a harness or a script over the Agent Client Protocol: on standard input and output, until\n"
        "the client leaves. Sessions are those of the console; docs/EDITORS.md says how clients are set up.",
        _EXAMPLE,
    )
    made.add_argument(
        "--login",
        nargs="?",
        const="",
        metavar="PROVIDER",
        help="ask for a provider's key in this terminal, keep it in the system's keyring, and end",
    )
    add_run_options(made)
    return made


def main(arguments: Sequence[str]) -> int:
    """Serve until the client leaves, or take a key."""
    namespace = parser().parse(arguments)
    if namespace.login is not None:
        return _log_in(namespace)
    try:
        from tui_agent.acp_agent.program import run_agent
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "acp":
            raise
        raise UsageError(
            "agent-tui acp needs the package agent-client-protocol, which is not installed.\n"
            f"Install it with: {installed.adding('acp')}"
        ) from missing
    import asyncio

    from tui_agent.cli.logs import log_to_stderr
    from tui_agent.frontend.arguments import ConsoleArguments

    log_to_stderr()
    if sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write(
            "agent-tui acp waits for messages of a client: editors and harnesses start it. Ctrl+C ends it.\n"
        )
    config = namespace.config and Path(namespace.config)
    return asyncio.run(run_agent(ConsoleArguments(overrides(namespace), config)))


def program() -> int:
    """Run `agent-tui acp` as the command `tui-agent-acp`, for registries that start an agent by one name."""
    from tui_agent.cli import main as agent_tui

    return agent_tui(["acp", *sys.argv[1:]])


def _log_in(namespace: Namespace) -> int:
    """Take a provider's key from the terminal into the keyring; 0 once it is there."""
    from tui_agent import keychain
    from tui_agent.config.settings import load_settings
    from tui_agent.models.provider_keys import key_variable

    settings = load_settings(overrides(namespace), namespace.config)
    try:
        provider = namespace.login or _asked_provider(settings.model)
        variable = key_variable(settings.called(settings.model), provider)
        keychain.keep(variable, _asked_key(variable))
    except ValueError as error:
        raise UsageError(f"agent-tui acp --login: {error}") from error
    except EOFError as error:
        raise UsageError("agent-tui acp --login asks in a terminal; there is none.") from error
    except keychain.NoKeyringError as error:
        raise UsageError(
            f"The key was not kept: {error}.\nSet the provider's variable in the environment of your client instead."
        ) from error
    sys.stdout.write(f"{variable} is in the keyring of this system.\n")
    return 0


def _asked_provider(model: str) -> str:
    """The provider, unless a model says it."""
    return "" if model else input("Provider (openai, anthropic, …): ").strip() or "openai"


def _asked_key(variable: str) -> str:
    """Raise `ValueError` if none is given."""
    from getpass import getpass

    key = getpass(f"Key for {variable} (it is not shown): ").strip()
    if not key:
        raise ValueError("no key was given.")
    return key
