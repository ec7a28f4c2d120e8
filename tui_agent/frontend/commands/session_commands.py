"""What a command does to the session, once for both consoles: it takes the text behind its name and answers in words.

What cannot be done is raised as `ValueError` with what would be right. Nothing is shown and nothing is asked here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from tui_agent.core.names import APPROVALS, Approval, next_approval

if TYPE_CHECKING:
    from tui_agent.config.user_file import UserFile
    from tui_agent.core.state import RunState
    from tui_agent.session.session import Session


def policy(session: Session, name: str) -> str:
    """Judge by another policy from the next run on."""
    session.set_policy(name)
    return f"{'The next run is' if session.running else 'Runs are'} judged by {name}."


def profile(session: Session, name: str) -> str:
    """Call the model of a profile, with its parameters, from the next call on."""
    session.set_profile(name)
    return f"The next call goes to the profile {name}."


def approve(session: Session, mode: str) -> str:
    """Change what asks the operator first, to the next mode where none is named."""
    mode = mode or next_approval(session.state.session.approve or session.settings.approve)
    if mode not in APPROVALS:
        raise ValueError(f"There is no mode {mode}. The modes are {', '.join(APPROVALS)}.")
    session.set_approve(Approval(mode))
    return f"{Approval(mode).words.capitalize()}."


def title(session: Session, name: str) -> str:
    session.set_title(name)
    return f"This session is now named {session.state.session.title or name}."


def breaker(session: Session, argument: str) -> str:
    """`TOOL open` or `TOOL close`."""
    tool, _, what = argument.rpartition(" ")
    if what not in {"open", "close"} or not tool:
        raise ValueError("Write /breaker TOOL open, or /breaker TOOL close.")
    session.set_breaker(tool.strip(), opened=what == "open")
    return ""


def compact(session: Session, instructions: str) -> str:
    """Summarise the older part of the conversation: now, or before the next call of the run."""
    return session.compact(instructions)


def skip_wait(session: Session, _: str) -> str:
    """Call the model again now, where a failed call waits for its next try."""
    return "" if session.skip_wait() else "No call of the model waits."


async def stop(session: Session, _: str) -> str:
    """End the run with a partial answer; one that an earlier process left open, before it does anything."""
    if not (session.running or session.go_on()):
        return "No run is under way."
    await session.stop()
    return ""


AT_ONCE: Mapping[str, Callable[[Session, str], str]] = {
    "policy": policy,
    "profile": profile,
    "approve": approve,
    "title": title,
    "breaker": breaker,
    "compact": compact,
    "skip-wait": skip_wait,
}
AWAITED: Mapping[str, Callable[[Session, str], Awaitable[str]]] = {"stop": stop}
NAMES = frozenset((*AT_ONCE, *AWAITED))
"""Commands of which this is the whole: no console adds a view of its own."""


async def model(session: Session, name: str) -> str:
    """Call another model from the next call on, once its name was looked up."""
    check = await session.check_model(name)
    if not check.usable:
        raise ValueError(check.message)
    session.set_model(name)
    return check.message or f"The next call goes to {name}."


async def background(session: Session, argument: str) -> str:
    """`stop ID` ends a command."""
    what, _, name = argument.partition(" ")
    if what != "stop" or not name:
        raise ValueError("Write /background, or /background stop ID.")
    await session.stop_background(name.strip())
    return ""


async def mcp(session: Session, argument: str) -> str:
    """`trust NAME` starts a server of the workspace, `reconnect NAME` connects to one anew."""
    what, _, name = (part.strip() for part in argument.partition(" "))
    if what not in {"trust", "reconnect"} or not name:
        raise ValueError("Write /mcp, /mcp trust NAME, or /mcp reconnect NAME.")
    if not await (session.trust_server(name) if what == "trust" else session.reconnect_server(name)):
        raise ValueError(f"There is no MCP server {name} for that; /mcp lists them.")
    return ""


async def playbook(session: Session, argument: str) -> str:
    """`forget ID`, `forget all`, `edit ID WORDS`."""
    what, _, rest = argument.partition(" ")
    wanted, _, words = rest.strip().partition(" ")
    if what not in {"forget", "edit"} or not wanted or (what == "edit") is not bool(words):
        raise ValueError(
            "Write /playbook, /playbook forget ID, /playbook forget all, or /playbook edit ID WORDS."
        )
    book = session.playbook
    change = partial(book.forget, wanted) if what == "forget" else partial(book.edit, wanted, words.strip())
    try:
        done = await asyncio.to_thread(change)
    except OSError as error:
        raise ValueError(str(error)) from error
    if not done:
        raise ValueError(f"There is no {wanted} in the playbook; /playbook lists what there is.")
    return "Forgotten." if what == "forget" else "Your words are said from the next such failure on."


async def permissions(session: Session, file: UserFile, argument: str) -> str:
    """Make a rule, or take one back."""
    from tui_agent.frontend.commands.rule_words import change_by_words
    from tui_agent.session.rules import SessionRules
    from tui_agent.terminal_text import revealed_line

    return revealed_line(await change_by_words(SessionRules(session, file), argument), 400)


def skill_request(session: Session, name: str) -> str:
    """The beginning of a message that asks for a skill."""
    found = session.find_skills()
    if found.named(name) is None:
        there = ", ".join(skill.name for skill in found.skills) or "none"
        raise ValueError(f"There is no skill {name}. There are: {there}.")
    return f"Use the skill {name}"


def newest_reply(state: RunState) -> str:
    """The newest reply or answer, whole and as the model wrote it. Raises `ValueError` where none has come."""
    from tui_agent.core.projections.entries import OutcomeEntry, ReplyEntry

    for entry in reversed(state.conversation.entries):
        match entry:
            case ReplyEntry(text=text) | OutcomeEntry(answer=text) if text:
                return text
    raise ValueError("No reply has come yet.")
