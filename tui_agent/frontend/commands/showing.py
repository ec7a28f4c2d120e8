"""The commands that show something of the session or recording, and change nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_agent.frontend.commands.command import Command

if TYPE_CHECKING:
    from tui_agent.frontend.commands.host import Host, SessionHost


class Help(Command["Host"]):
    name = "help"
    help = "Keys, commands and what each pane means"
    key = "f1"
    replay = early = True

    def do(self, host: Host, argument: str) -> str:
        host.show_help()
        return ""


class Context(Command["Host"]):
    name = "context"
    help = "What fills the model's context window, by kind"
    replay = True

    async def do(self, host: Host, argument: str) -> str:
        from tui_agent.core.request.context import context_use
        from tui_agent.frontend.lines.context import context_lines

        use = context_use(host.shown.state)
        await host.show_report("Context", lambda width: context_lines(use, width))
        return ""


class Why(Command["Host"]):
    name = "why"
    help = "Why: what happened, what was counted, what the model read, the rule, what comes next"
    key = "f9"
    replay = True

    async def do(self, host: Host, argument: str) -> str:
        return await explain(host, *host.asked_about)


async def explain(host: Host, seq: int = 0, call_id: str = "") -> str:
    """Show why an event came about; 0: what is wrong now, else the last verdict or the run's end."""
    from tui_agent.frontend.lines.why import why_lines
    from tui_agent.frontend.why import newest_trouble
    from tui_agent.store.errors import JournalError

    seq = seq or newest_trouble(host.shown.state)
    if not seq:
        return "Nothing has failed, and no verdict was given yet."
    try:
        found = await host.shown.gather_why(seq, call_id)
    except (JournalError, IndexError) as error:
        raise ValueError(f"The journal cannot be read: {error}") from error
    await host.show_report("Why?", lambda width: why_lines(found, width), 110)
    return ""


class Plan(Command["Host"]):
    name = "plan"
    help = "Open or close the model's plan"
    key = "f7"
    replay = True

    def do(self, host: Host, argument: str) -> str:
        if host.shown.state.conversation.plan is None:
            return "The model keeps no plan."
        host.show_plan()
        return ""


class Status(Command["Host"]):
    name = "status"
    help = "Session, model, policy, approvals, what was used"
    replay = True

    async def do(self, host: Host, argument: str) -> str:
        from tui_agent.frontend.lines.reports import status_lines

        state, coming = host.shown.state, host.shown.coming
        await host.show_report("Status", lambda width: status_lines(state, width, *coming))
        return ""


class Cost(Command["Host"]):
    name = "cost"
    help = "Tokens and money of this run and of the session"
    replay = True

    async def do(self, host: Host, argument: str) -> str:
        from tui_agent.frontend.lines.reports import cost_lines

        state, now = host.shown.state, host.now
        await host.show_report("Cost", lambda width: cost_lines(state, now, width))
        return ""


class Diff(Command["Host"]):
    name = "diff"
    help = "All changes of this run, file by file; `back`: those that a fresh start with earlier files takes back"
    argument = "[back]"
    values = ("back",)
    replay = True

    async def do(self, host: Host, argument: str) -> str:
        import asyncio

        from tui_agent.core.request.fresh_start import better_files
        from tui_agent.frontend.lines.diff import files_of
        from tui_agent.frontend.lines.reports import BY_TOOLS, changed_files

        if argument not in {"", *self.values}:
            raise ValueError("Write /diff, or /diff back.")
        earlier = better_files(host.shown.state) if argument else None
        if argument and earlier is None:
            return "No files are kept at which more tests passed than now."
        patch = await host.shown.patch("" if earlier is None else earlier.ref)
        files = [] if patch is None else await asyncio.to_thread(files_of, patch.text)
        if earlier is not None:
            title = f"Changes since step {earlier.step}, which a fresh start with its files takes back"
        elif patch is None:
            files, title = changed_files(host.shown.state), BY_TOOLS
        else:
            title = "Changes of this run" if patch.whole else "Changes of this run, before the step under way"
        if files:
            await host.show_changes(files, title)
            return ""
        if earlier is None:
            return "This run has changed no file."
        kept = "are not kept any more" if patch is None else "stand as they were"
        return f"The files of step {earlier.step} {kept}."


class History(Command["SessionHost"]):
    name = "history"
    help = "Look through earlier prompts"
    key = "ctrl+r"
    early = True

    async def do(self, host: SessionHost, argument: str) -> str:
        from tui_agent.frontend.lines.passages import Row

        rows = [Row(text, "", text) for text in dict.fromkeys(reversed(host.history))]
        if not rows:
            return "There is no earlier prompt yet."
        chosen = await host.choose("Earlier prompts", rows)
        if chosen is not None:
            host.put_in_prompt(chosen, instead=True)
        return ""


class Editor(Command["SessionHost"]):
    name = "editor"
    help = "Write the prompt in your editor ($VISUAL, $EDITOR)"
    key = "ctrl+g"
    early = True

    async def do(self, host: SessionHost, argument: str) -> str:
        await host.edit_prompt()
        return ""


class Copy(Command["Host"]):
    name = "copy"
    help = "Copy the newest reply to the clipboard"
    replay = True

    async def do(self, host: Host, argument: str) -> str:
        """Copy the newest reply or answer, whole and as the model wrote it."""
        reply = host.shown.state.conversation.newest_reply
        if not reply:
            raise ValueError("No reply has come yet.")
        return await host.copy(reply, "the newest reply")


class Suspend(Command["Host"]):
    name = "suspend"
    help = "Back to the shell for a while; fg returns here"
    key = "ctrl+z"
    replay = early = True

    def do(self, host: Host, argument: str) -> str:
        host.suspend()
        return ""
