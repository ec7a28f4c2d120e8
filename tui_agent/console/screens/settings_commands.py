"""Commands that change how a live session works: policy, model, approvals, settings, keys, permission rules."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from textual import work
from textual.binding import Binding

from tui_agent.console.screens.session_screen import SessionScreen, on_session
from tui_agent.frontend.commands import session_commands

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings
    from tui_agent.session.session import Session


class SettingsCommands(SessionScreen):
    """A session that can be set otherwise while it runs."""

    @on_session
    @work(group="commands")
    async def action_model(self, session: Session, name: str = "") -> None:
        """Call another model from the next call on, once its name was looked up; without a name, choose one."""
        name = name or await self._picked_model(session)
        if name:
            await self.answer(session_commands.model(session, name))

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
    @work(group="commands")
    async def action_login(self, session: Session, argument: str = "") -> None:
        """Ask for a key without showing it, and use it."""
        from tui_agent.console.screens.field import FieldScreen, Judged, Values

        words = argument.split()
        forget = "--forget" in words
        try:
            variable = session.key_variable(" ".join(word for word in words if word != "--forget"))
        except ValueError as error:
            self.say(str(error), "warning")
            return
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
        await self.answer(session_commands.permissions(session, file, argument))
