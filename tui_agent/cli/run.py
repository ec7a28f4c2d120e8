"""`agent-tui run`: the same engine without a screen, for scripts and CI."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.cli.errors import UsageError
from tui_agent.cli.interrupts import sigterm_interrupts
from tui_agent.cli.options import (
    Parser,
    add_agent_options,
    add_check_options,
    add_run_options,
    amount,
    goal_of,
    one_of,
    overrides,
)
from tui_agent.config.errors import ConfigError
from tui_agent.core.names import ON_ESCALATION, OUTPUT_FORMS

if TYPE_CHECKING:
    from argparse import Namespace

    from tui_agent.config.settings import Settings
    from tui_agent.core.state import SessionFacts
    from tui_agent.models.choose import ModelByName
    from tui_agent.models.host_start import Begun
    from tui_agent.models.protocol import Model
    from tui_agent.session.goal import Goal
    from tui_agent.session.other_agent import OtherAgent

_EXAMPLE = """
agent-tui run "fix the failing tests" --check "pytest -q" --model openai/gpt-5 --approve all
git diff | agent-tui run - --output json --timeout 600 --max-cost 1 | jq -r .answer"""

_EPILOG = """
exit codes:
  0 answered · 1 internal error · 2 wrong usage or configuration · 3 partial answer · 4 stopped by recovery
  5 an escalation nobody could answer · 6 the model could not be used · 130 interrupted (signal, --timeout)"""


def parser() -> Parser:
    made = Parser(
        "run",
        "Run a task to its end without a screen. What would need an approval is denied, unless --approve\n"
        "allows it, and the model is told. The answer goes to standard output, all else to standard error.",
        _EXAMPLE + "\n" + _EPILOG,
    )
    made.add_argument("task", nargs="?", metavar="TASK", help="what to do, in quotes; - reads it from stdin")
    made.add_argument(
        "--output",
        type=one_of(OUTPUT_FORMS),
        metavar="FORM",
        help="text: the answer (default); json: one object; jsonl: events as they happen, then the object",
    )
    made.add_argument(
        "--on-escalation",
        type=one_of(ON_ESCALATION),
        metavar="WHAT",
        help="what happens where an operator would be asked: continue (default under combined), partial answer\n"
        "(default under the other policies), or stop",
    )
    made.add_argument("--timeout", type=amount, metavar="SECONDS", help="end as interrupted after this time")
    made.add_argument("--resume", metavar="SESSION", help="go on with a session: TASK is its next message")
    add_check_options(made)
    add_run_options(made)
    add_agent_options(made)
    return made


def main(arguments: Sequence[str]) -> int:
    """Run to an outcome; its exit code."""
    with sigterm_interrupts():
        return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
    namespace = parser().parse(arguments)
    task, goal = _task(namespace.task), goal_of(namespace, "run")
    import asyncio

    from tui_agent.cli.logs import log_to_stderr

    log_to_stderr("tui_agent")

    return asyncio.run(_run_in(namespace, task, goal))


async def _run_in(namespace: Namespace, task: str, goal: Goal | None) -> int:
    """The model host begins first; settings, and what a session takes, are imported beside it."""
    import asyncio
    import importlib

    from tui_agent.frontend.arguments import ConsoleArguments, model_early
    from tui_agent.models import host_start
    from tui_agent.store.no_collection import no_collection

    given = ConsoleArguments(overrides(namespace), namespace.config and Path(namespace.config))
    begun = host_start.begin_early(*model_early(given))
    await asyncio.sleep(0)  # the host's process is there before anything is imported beside it
    try:
        with no_collection():
            settings, resume = await asyncio.to_thread(_settings, namespace)
            model = _model(settings, begun)
    except BaseException:
        if begun is not None:
            await host_start.end(begun)
        raise
    starting = asyncio.create_task(_started(model, settings))
    try:
        with no_collection():
            sandboxes = await asyncio.to_thread(importlib.import_module, "tui_agent.session.sandboxes")
            trying = asyncio.create_task(sandboxes.tried_out(settings))
            headless = await asyncio.to_thread(importlib.import_module, "tui_agent.headless")
        await asyncio.gather(trying, return_exceptions=True)  # the session says what is wrong with it
        find = partial(_agent, settings)
        code: int = await headless.run_headless(
            settings, task, model=model, resume=resume, goal=goal, agent=find
        )
    finally:
        await model.close()
        await asyncio.gather(starting, return_exceptions=True)  # the first call said what was wrong with it
    return code


def _settings(namespace: Namespace) -> tuple[Settings, Path | None]:
    """The settings, and the session to go on with."""
    from tui_agent.config.settings import load_settings, require_model, require_workspace

    settings = load_settings(overrides(namespace), namespace.config)
    require_workspace(settings)
    if settings.agent:
        from tui_agent.acp_client.entries import agent_entry

        agent_entry(settings, settings.agent)
    elif namespace.resume is None:
        require_model(settings)
    if namespace.resume is None:
        return settings, None
    from tui_agent.store.session_store import SessionStore

    return settings, SessionStore(settings.state_dir).resolve(namespace.resume)


def _agent(settings: Settings, facts: SessionFacts) -> OtherAgent | None:
    """The other agent that takes the steps of a session, if one does."""
    if not settings.agent and facts.agent is None:
        from tui_agent.config.settings import require_model

        require_model(settings)
        return None
    from tui_agent.acp_client.session import session_agent

    return session_agent(settings, facts)


async def _started(model: Model, settings: Settings) -> None:
    if not settings.agent:
        await model.start()


def _model(settings: Settings, begun: Begun | None) -> ModelByName:
    from tui_agent.models.choose import ModelByName, own_host
    from tui_agent.models.scenario_checks import ScenarioError

    try:
        return ModelByName(settings, own_host(settings, begun))
    except ScenarioError as error:
        raise ConfigError(
            f"The scripted model cannot be used: {error}\nName another model with --model."
        ) from error


def _task(text: str | None) -> str:
    if text is None:
        raise UsageError(
            'agent-tui run: there is no task; say what to do, as in agent-tui run "fix the failing tests".\n'
            "`agent-tui run -` reads it from standard input."
        )
    if text == "-":
        if sys.stdin is None or sys.stdin.isatty():
            sys.stderr.write("agent-tui: reading the task from the terminal; end it with Ctrl+D.\n")
        text = sys.stdin.buffer.read().decode("utf-8", "replace") if sys.stdin is not None else ""
    if not text.strip():
        raise UsageError(
            "agent-tui run: the task is empty; say what to do in quotes, or on standard input with -."
        )
    return text
