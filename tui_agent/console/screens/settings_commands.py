"""Commands that change how a live session works: policy, model, approvals, settings, keys, permission rules."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from textual import work
from textual.binding import Binding

from tui_agent.console.screens.session_screen import SessionScreen, on_session
from tui_agent.core.names import APPROVALS, Approval, next_approval

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings
    from tui_agent.session.session import Session


class SettingsCommands(SessionScreen):
    """A session that can be set otherwise while it runs."""

    @on_session
    def action_policy(self, session: Session, name: str) -> None:
        """Judge by another policy from the next run on."""
        from tui_agent.terminal_text import one_line

        session.set_policy(name)
        when = "The next run is" if session.running else "Runs are"
        self.say(f"{when} judged by {one_line(name)}.")

    @on_session
    @work(group="commands")
    async def action_model(self, session: Session, name: str = "") -> None:
        """Call another model from the next call on, once its name was looked up; without a name, choose one."""
        from tui_agent.terminal_text import one_line

        name = name or await self._picked_model(session)
        if not name:
            return
        check = await session.check_model(name)
        if check.usable:
            try:
                session.set_model(name)
            except ValueError as error:
                self.say(str(error), "warning")
                return
        if check.remark:
            self.say(one_line(check.remark), "warning")
        else:
            self.say(f"The next call goes to {one_line(name)}.")

    async def _picked_model(self, session: Session) -> str:
        """One of the models that can be used now from this session; empty: none was chosen."""
        from tui_agent.console.screens.pick import PickScreen
        from tui_agent.frontend.commands.model_offers import Offer, name_as_written, offers
        from tui_agent.models.discovery import discover

        self.say("Looking for models…")
        found = await discover(session.settings, os.environ)
        rows = [row for row in offers(found) if row.value.api_base in {"", session.settings.api_base}]
        remark = (
            ""
            if rows
            else "No profile, no server and no provider's key was found; a name that you write is taken."
        )
        chosen = await self.ask(PickScreen("Model of the next call", rows, remark, name_as_written))
        return chosen.model if isinstance(chosen, Offer) else ""

    @on_session
    def action_profile(self, session: Session, name: str) -> None:
        """Call the model of a profile, with its parameters, from the next call on."""
        session.set_profile(name)

    @on_session
    @work(group="commands")
    async def action_login(self, session: Session, argument: str = "") -> None:
        """Ask for a key without showing it, and use it."""
        from tui_agent.console.screens.field import FieldScreen, Judged, Values

        words = argument.split()
        forget = "--forget" in words
        variable = session.key_variable(" ".join(word for word in words if word != "--forget"))
        if forget:
            self.say(await session.log_out(variable))
            return

        async def take(values: Values) -> str:
            self.say(await session.log_in(variable, values[0].strip()))
            return ""

        await self.ask(
            FieldScreen(
                f"Key for {variable}",
                "It goes into the keyring of this system and to the provider, and into no file of agent-tui.",
                "",
                (),
                lambda values: Judged(
                    "" if values[0].strip() else "Paste or type the key.", bool(values[0].strip())
                ),
                take,
                masked=True,
            )
        )

    @on_session
    def action_approve(self, session: Session, mode: str = "") -> None:
        """Change what asks the operator first, to the next mode where none is named."""
        mode = mode or next_approval(session.state.session.approve or session.settings.approve)
        if mode not in APPROVALS:
            self.say(f"There is no mode {mode}. The modes are {', '.join(APPROVALS)}.", "warning")
            return
        approve = Approval(mode)
        session.set_approve(approve)
        self.say(f"{approve.words.capitalize()}.")

    @on_session
    @work(group="commands")
    async def action_settings(self, session: Session) -> None:
        """Show every setting."""
        from tui_agent.console.screens.settings import SettingsScreen

        file, applied = self.app.user_file(session.settings), partial(self._apply, session)
        await self.ask(SettingsScreen(file, applied, self.run_command))

    def _apply(self, session: Session, key: str, settings: Settings) -> str:
        """Take over a setting that was changed in the user's file; from when on it holds."""
        match key:
            case "model" if settings.model:
                self.action_model(settings.model)
                return "from the next call of the model on."
            case "approve":
                session.set_approve(settings.approve)
                return "from now on."
            case "policy":
                session.set_policy(settings.policy)
                return "from the next run on."
        if self.app.take_over(key, settings):
            return "from now on."
        return "from the next run on." if session.use(key, settings) else "from the next session on."

    @on_session
    @work(group="commands")
    async def action_keys(self, session: Session) -> None:
        """Show all actions with their keys."""
        from tui_agent.console.screens.keys import KeysScreen

        file, applied = self.app.user_file(session.settings), partial(self._apply, session)
        own = (binding for binding in type(self).BINDINGS if isinstance(binding, Binding) and not binding.id)
        await self.ask(KeysScreen(file, applied, frozenset(binding.key for binding in own)))

    @on_session
    @work(group="commands")
    async def action_permissions(self, session: Session, argument: str = "") -> None:
        """Show the permission rules in force, or change one by words."""
        file = self.app.user_file(session.settings)
        if not argument:
            from tui_agent.console.screens.rules import RulesScreen

            await self.ask(RulesScreen(session, file))
            return
        from tui_agent.frontend.commands.rule_words import change_by_words
        from tui_agent.session.rules import SessionRules
        from tui_agent.terminal_text import one_line, revealed_line

        try:
            self.say(revealed_line(await change_by_words(SessionRules(session, file), argument), 400))
        except ValueError as error:
            self.say(one_line(str(error), 400), "warning")
