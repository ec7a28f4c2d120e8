"""What each command does, once for both consoles: it takes the text behind its name and answers in words.

What cannot be done is raised as `ValueError` or `SessionError`, with what would be right. What is shown or asked on the
way is a `View`'s; commands about a screen alone (its panes, tabs, colours) are that screen's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tui_agent.core.names import APPROVALS, Approval, Mode, next_approval
from tui_agent.formats.exporters import FORMATS
from tui_agent.frontend.commands import rewind
from tui_agent.frontend.commands.export import export
from tui_agent.frontend.commands.registry import Command, shown_key
from tui_agent.frontend.commands.server_entries import expanded, names_a_server
from tui_agent.frontend.commands.view import ChosenSession, LiveView, View
from tui_agent.frontend.lines.context import context_lines
from tui_agent.frontend.lines.diff import files_of
from tui_agent.frontend.lines.passages import Row
from tui_agent.frontend.lines.reports import BY_TOOLS, changed_files, cost_lines, status_lines
from tui_agent.frontend.lines.servers import server_lines
from tui_agent.frontend.lines.skills import skill_lines
from tui_agent.frontend.lines.why import why_lines
from tui_agent.quantities import counted
from tui_agent.store.errors import JournalError
from tui_agent.terminal_text import revealed_line
from tui_agent.tools.errors import ToolError
from tui_agent.tools.mcp.status import ServerStatus

if TYPE_CHECKING:
    from tui_agent.session.session import Session

Answer = str | Awaitable[str]
"""What is said of it; empty: it shows by itself."""

# --- how the run goes on -------------------------------------------------------------------------------------

_NEXT_TASK = {
    Mode.AUTO: "The next task goes on by itself.",
    Mode.STEP: "In the next task every request waits for you.",
    Mode.PAUSED: "The next task waits before its first request.",
}
"""What a mode means while no run is under way."""


def auto(view: LiveView, _: str) -> str:
    return go(view, Mode.AUTO)


def step(view: LiveView, _: str) -> str:
    return go(view, Mode.STEP)


def pause(view: LiveView, _: str) -> str:
    _set_mode(view, Mode.PAUSED)
    return "" if view.session.running else _NEXT_TASK[Mode.PAUSED]


def go(view: LiveView, mode: Mode) -> str:
    """Go on in this mode: with the request that waits, the run that was left open, or the message that waits."""
    view.keep_note()
    _set_mode(view, mode)
    session = view.session
    if view.operator.open_gate() or session.running:
        return ""
    if session.go_on():
        return "Going on with the run that was open."
    return "Sending the message that waits." if session.send_waiting() else _NEXT_TASK[mode]


def _set_mode(view: LiveView, mode: Mode) -> None:
    view.session.set_mode(mode)
    view.operator.interrupted_in = None


async def interrupt(view: LiveView, _: str) -> str:
    """Interrupt the operator's own command, else the call or tool that runs; the run pauses."""
    if view.own_run is not None:
        view.own_run.interrupt()
        return ""
    session = view.session
    if not session.running:
        return "No run is under way."
    mode = session.state.session.mode
    view.operator.interrupted_in = Mode.AUTO if mode is Mode.PAUSED else mode
    await session.interrupt()
    waiting = f" with {counted(len(view.queue), 'queued message')}" if view.queue else ""
    return (
        f"Interrupted: a message goes at once, {shown_key('auto')} goes on{waiting}, "
        f"{shown_key('step')} does one step, /stop ends the run."
    )


async def with_servers(session: Session, text: str) -> str:
    """The message that a text is, with what it names of MCP servers: a prompt of theirs, or resources.

    Raises `ValueError`.
    """
    if session.servers is None or not names_a_server(text, session.servers.rows()):
        return text
    try:
        return await expanded(text, session.servers)
    except ToolError as error:
        raise ValueError(str(error)) from error


async def submit(view: LiveView, text: str, typed: str, model: str = "") -> None:
    """Start a run with the message, or queue it; the run that was interrupted to say it goes on. Raises `SessionError`.

    `typed`: what the operator wrote of it, which may name images. `model`: that of this run alone.
    """
    await view.session.submit(text, typed, model)
    if view.operator.interrupted_in is not None and view.session.running:
        go(view, view.operator.interrupted_in)


async def send_now(view: LiveView) -> str:
    """Cut short what runs, and go on with the messages that wait."""
    mode = view.session.state.session.mode
    if view.operator.waiting_gate is None:
        await view.session.interrupt()
    return go(view, Mode.AUTO if mode is Mode.PAUSED else mode)


async def stop(view: LiveView, _: str) -> str:
    """End the run with a partial answer; one that an earlier process left open, before it does anything."""
    if not (view.session.running or view.session.go_on()):
        return "No run is under way."
    await view.session.stop()
    return ""


def skip_wait(view: LiveView, _: str) -> str:
    """Call the model again now, where a failed call waits for its next try."""
    return "" if view.session.skip_wait() else "No call of the model waits."


def compact(view: LiveView, instructions: str) -> str:
    """Summarise the older part of the conversation: now, or before the next call of the run."""
    return view.session.compact(instructions)


def note(view: LiveView, text: str) -> str:
    """Replace the note of the next request, drop it, or edit it where it waits."""
    if text:
        rewrite_note(view, None if text == "drop" else text)
        return ""
    if view.edit_note():
        return ""
    gate = view.operator.waiting_gate
    now = view.session.state.note if gate is None else gate.note
    said = f"The model reads next: {now}" if now else "No note goes with the next request."
    return f"/note TEXT replaces the note, /note drop sends none. {said}"


def rewrite_note(view: LiveView, note: str | None) -> None:
    """Send this note with the next call, or none; the request that waits shows it at once."""
    view.operator.rewrite_note(note)
    view.session.edit_note(note)


async def queue(view: LiveView, _: str) -> str:
    if not view.queue:
        return "No message is queued."
    await view.show_queue()
    return ""


def unqueue(view: LiveView, _: str) -> str:
    """The newest queued message goes back into the prompt."""
    waiting = view.queue
    if not waiting:
        return "No message is queued."
    if view.unqueue(waiting[-1].id):
        view.put_in_prompt(waiting[-1].text, restored=True)
    return ""


# --- what the session works with -----------------------------------------------------------------------------


def policy(view: LiveView, name: str) -> str:
    """Judge by another policy from the next run on."""
    view.session.set_policy(name)
    return f"{'The next run is' if view.session.running else 'Runs are'} judged by {name}."


def profile(view: LiveView, name: str) -> str:
    """Call the model of a profile, with its parameters, from the next call on."""
    view.session.set_profile(name)
    return f"The next call goes to the profile {name}."


async def model(view: LiveView, name: str) -> str:
    """Call another model from the next call on, once its name was looked up; without a name, choose one."""
    name = name or await _picked_model(view)
    if not name:
        return ""
    check = await view.session.check_model(name)
    if not check.usable:
        raise ValueError(check.message)
    view.session.set_model(name)
    return check.message or f"The next call goes to {name}."


async def _picked_model(view: LiveView) -> str:
    """One of the models that can be used now from this session, which keeps its server; empty: none was chosen."""
    from tui_agent.frontend.commands.model_offers import found_now, name_as_written

    view.say("Looking for models…")
    settings = view.session.settings
    rows = [row for row in await found_now(settings) if row.value.api_base in {"", settings.api_base}]
    remark = "No profile, no server and no provider's key was found. You may write any name."
    chosen = await view.choose("Model of the next call", rows, "" if rows else remark, name_as_written)
    return "" if chosen is None else str(chosen.model)


async def login(view: LiveView, argument: str) -> str:
    """Use a key from now on and keep it, or forget it."""
    words = argument.split()
    variable = view.session.key_variable(" ".join(word for word in words if word != "--forget"))
    if "--forget" in words:
        return await view.session.log_out(variable)
    about = "It goes into the keyring of this system and to the provider, and into no file of agent-tui."
    key = (await view.secret(f"Key for {variable}", about)).strip()
    return await view.session.log_in(variable, key) if key else "No key was given."


def approve(view: LiveView, mode: str) -> str:
    """Change what asks the operator first, to the next mode where none is named."""
    session = view.session
    mode = mode or next_approval(session.state.session.approve or session.settings.approve)
    if mode not in APPROVALS:
        raise ValueError(f"There is no mode {mode}. The modes are {', '.join(APPROVALS)}.")
    session.set_approve(Approval(mode))
    return f"{Approval(mode).words.capitalize()}."


async def permissions(view: LiveView, argument: str) -> str:
    """Make a rule, take one back, or show them."""
    from tui_agent.frontend.commands.rule_words import change_by_words

    if argument:
        return revealed_line(await change_by_words(view.session, view.user_file, argument), 400)
    await view.show_rules(view.user_file)
    return ""


def breaker(view: LiveView, argument: str) -> str:
    """`TOOL open` or `TOOL close`."""
    tool, _, what = argument.rpartition(" ")
    if what not in {"open", "close"} or not tool:
        raise ValueError("Write /breaker TOOL open, or /breaker TOOL close.")
    view.session.set_breaker(tool.strip(), opened=what == "open")
    return ""


async def background(view: LiveView, argument: str) -> str:
    """`stop ID` ends a command; alone: what runs is shown."""
    what, _, name = argument.partition(" ")
    if not argument:
        running = tuple(view.session.state.background.running.values())
        if not running:
            return "Nothing runs in the background."
        name = await view.choose_background(running)
    elif what != "stop" or not name:
        raise ValueError("Write /background, or /background stop ID.")
    if name:
        await view.session.stop_background(name.strip())
    return ""


async def mcp(view: LiveView, argument: str) -> str:
    """`trust NAME` starts a server of the workspace, `reconnect NAME` connects to one anew; alone: how they stand."""
    session = view.session
    if not argument:
        servers = session.servers
        rows = servers.rows if servers is not None else tuple
        await view.show_report("MCP servers", lambda width: server_lines(rows(), width), 100, moves=True)
        return ""
    what, _, name = (part.strip() for part in argument.partition(" "))
    if what not in {"trust", "reconnect"} or not name:
        raise ValueError("Write /mcp, /mcp trust NAME, or /mcp reconnect NAME.")
    if not await (session.trust_server(name) if what == "trust" else session.reconnect_server(name)):
        raise ValueError(f"There is no MCP server {name} for that; /mcp lists them.")
    return ""


async def playbook(view: LiveView, argument: str) -> str:
    """`forget ID`, `forget all`, `edit ID WORDS`; alone: what helped against failures."""
    from tui_agent.frontend.lines.playbook import known, playbook_lines

    book = view.session.playbook
    if not argument:
        found = await asyncio.to_thread(known, book, view.now)
        await view.show_report("Playbook", lambda width: playbook_lines(found, width))
        return ""
    what, _, rest = argument.partition(" ")
    wanted, _, words = rest.strip().partition(" ")
    if what not in {"forget", "edit"} or not wanted or (what == "edit") is not bool(words):
        raise ValueError(
            "Write /playbook, /playbook forget ID, /playbook forget all, or /playbook edit ID WORDS."
        )
    change = partial(book.forget, wanted) if what == "forget" else partial(book.edit, wanted, words.strip())
    if not await asyncio.to_thread(change):
        raise ValueError(f"There is no {wanted} in the playbook; /playbook lists what there is.")
    return "Forgotten." if what == "forget" else "Your words are said from the next such failure on."


async def skills(view: LiveView, name: str) -> str:
    """Show the skills; with a name, begin a message that asks for one."""
    found = view.session.find_skills()
    if not name:
        await view.show_report("Skills", lambda width: skill_lines(found, width))
    elif found.named(name) is None:
        there = ", ".join(skill.name for skill in found.skills) or "none"
        raise ValueError(f"There is no skill {name}. There are: {there}.")
    else:
        view.put_in_prompt(f"Use the skill {name}: ")
    return ""


# --- what is shown -------------------------------------------------------------------------------------------


def show_help(view: View, _: str) -> str:
    view.show_help()
    return ""


async def status(view: View, _: str) -> str:
    state, coming = view.state, view.coming
    await view.show_report("Status", lambda width: status_lines(state, width, *coming))
    return ""


async def cost(view: View, _: str) -> str:
    state, now = view.state, view.now
    await view.show_report("Cost", lambda width: cost_lines(state, now, width))
    return ""


async def context(view: View, _: str) -> str:
    from tui_agent.core.request.context import context_use

    use = context_use(view.state)
    await view.show_report("Context", lambda width: context_lines(use, width))
    return ""


async def diff(view: View, _: str) -> str:
    """What the run changed, file by file."""
    patch = await view.patch()
    if patch is None:
        files, title = changed_files(view.state), BY_TOOLS
    else:
        files = await asyncio.to_thread(files_of, patch.text)
        title = "Changes of this run" if patch.whole else "Changes of this run, before the step under way"
    if not files:
        return "This run has changed no file."
    await view.show_changes(files, title)
    return ""


async def why(view: View, _: str) -> str:
    return await explain(view, *view.asked_about)


async def explain(view: View, seq: int = 0, call_id: str = "") -> str:
    """Show why an event came about; 0: what is wrong now, else the last verdict or the run's end."""
    from tui_agent.frontend.why import newest_trouble

    seq = seq or newest_trouble(view.state)
    if not seq:
        return "Nothing has failed, and no verdict was given yet."
    try:
        found = await view.gather_why(seq, call_id)
    except (JournalError, IndexError) as error:
        raise ValueError(f"The journal cannot be read: {error}") from error
    await view.show_report("Why?", lambda width: why_lines(found, width), 110)
    return ""


def plan(view: View, _: str) -> str:
    if view.state.conversation.plan is None:
        return "The model keeps no plan."
    view.show_plan()
    return ""


async def history(view: LiveView, _: str) -> str:
    """Choose an earlier prompt."""
    rows = [Row(text, "", text) for text in dict.fromkeys(reversed(view.history))]
    if not rows:
        return "There is no earlier prompt yet."
    chosen = await view.choose("Earlier prompts", rows)
    if chosen is not None:
        view.put_in_prompt(chosen, instead=True)
    return ""


async def editor(view: LiveView, _: str) -> str:
    await view.edit_prompt()
    return ""


async def copy(view: View, _: str) -> str:
    """The newest reply or answer, whole and as the model wrote it."""
    reply = view.state.conversation.newest_reply
    if not reply:
        raise ValueError("No reply has come yet.")
    return await view.copy(reply, "the newest reply")


# --- the session ---------------------------------------------------------------------------------------------


def title(view: LiveView, name: str) -> str:
    view.session.set_title(name)
    return f"This session is now named {view.session.state.session.title or name}."


async def new(view: LiveView, task: str) -> str:
    await view.open_new(task)
    return ""


async def clear(view: LiveView, _: str) -> str:
    """A new session in this one's place; asks first where a run is under way."""
    if await view.may_end_run("Closing this session"):
        await view.open_new(in_place=True)
    return ""


async def sessions(view: View, _: str) -> str:
    """Show the saved sessions, and open the one that is chosen."""
    from tui_agent.store.session_store import SessionStore

    chosen = await view.choose_session(await asyncio.to_thread(SessionStore, view.settings.state_dir))
    if chosen is not None:
        view.open_session(chosen)
    return ""


async def fork(view: View, _: str) -> str:
    """Fork the session where it is shown, and open the fork."""
    from tui_agent.session.fork import fork_session, read_point
    from tui_agent.store.journal import sessions_folder

    place, folder = await view.place(), sessions_folder(view.settings.state_dir)
    chosen = await view.choose_fork(read_point(*place, folder))
    if chosen is not None:
        made = await fork_session(place.parent, folder, chosen)
        view.open_session(ChosenSession(made.name), chosen.settings)
    return ""


async def export_shown(view: View, argument: str) -> str:
    """Write the session to the file that `[FORMAT] [FILE]` asks for."""
    return await export(view.source, argument)


def suspend(view: View, _: str) -> str:
    view.suspend()
    return ""


async def leave(view: View, _: str) -> str:
    await view.leave()
    return ""


# --- all of them ---------------------------------------------------------------------------------------------

OF_WHAT_IS_SHOWN: Mapping[str, Callable[[View, str], Answer]] = {
    "help": show_help,
    "context": context,
    "why": why,
    "plan": plan,
    "status": status,
    "cost": cost,
    "diff": diff,
    "sessions": sessions,
    "fork": fork,
    "export": export_shown,
    "copy": copy,
    "suspend": suspend,
    "quit": leave,
}
"""Commands that make sense over a recording too."""

OF_A_SESSION: Mapping[str, Callable[[LiveView, str], Answer]] = {
    **OF_WHAT_IS_SHOWN,
    "auto": auto,
    "pause": pause,
    "step": step,
    "interrupt": interrupt,
    "skip-wait": skip_wait,
    "stop": stop,
    "policy": policy,
    "model": model,
    "login": login,
    "profile": profile,
    "approve": approve,
    "note": note,
    "permissions": permissions,
    "skills": skills,
    "compact": compact,
    "breaker": breaker,
    "background": background,
    "mcp": mcp,
    "playbook": playbook,
    "unqueue": unqueue,
    "queue": queue,
    "history": history,
    "editor": editor,
    "new": new,
    "clear": clear,
    "title": title,
    "rewind": rewind.rewind,
    "undo": rewind.undo,
    "redo": rewind.redo,
}
"""Commands over a session that runs."""

AT_ANY_TIME = frozenset({"help", "suspend", "quit", "queue", "unqueue", "history", "editor", "new"})
"""Those that need no session to be open yet."""


def values_of(command: Command, session: Session | None) -> Sequence[str]:
    """What the command's argument can be, as far as that is known; `session` None: there is none that is open."""
    if command.name == "export":
        return FORMATS
    if session is None:
        return command.values
    match command.name:
        case "model":
            return [*session.settings.profiles, *session.settings.aliases]
        case "profile":
            return [*session.settings.profiles]
        case "background":
            return [f"stop {name}" for name in session.state.background.running]
        case "breaker":
            return [f"{tool} {what}" for tool in session.state.run.tools for what in ("open", "close")]
        case "mcp":
            rows = () if session.servers is None else session.servers.rows()
            waiting = [f"trust {row.name}" for row in rows if row.status is ServerStatus.UNTRUSTED]
            return [*waiting, *(f"reconnect {row.name}" for row in rows if row.server or row.why)]
    return command.values
