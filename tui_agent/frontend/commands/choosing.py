"""The commands that choose what the session works with: policy, model, keys, approvals, rules, tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui_agent.core.names import APPROVALS, POLICIES, Approval, next_approval
from tui_agent.frontend.commands.command import Command
from tui_agent.frontend.commands.other_agent import MODEL, choose_option, values_of

if TYPE_CHECKING:
    from tui_agent.frontend.commands.host import PromptHost, SessionHost


class Policy(Command["SessionHost"]):
    name = "policy"
    help = "Recovery policy of the next run; alone: the list of them"
    argument = "[NAME]"
    values = POLICIES

    def do(self, host: SessionHost, argument: str) -> str:
        if not argument:
            now = host.session.settings.policy
            named = ", ".join(f"{name} (now)" if name == now else name for name in POLICIES)
            return f"The policies are {named}. /policy NAME takes one for the next run."
        host.session.set_policy(argument)
        return f"{'The next run is' if host.session.running else 'Runs are'} judged by {argument}."


class Model(Command["SessionHost"]):
    name = "model"
    help = "Model of the next call: its litellm name, a profile or an alias; alone: choose one"
    argument = "[NAME]"

    def choices(self, host: SessionHost) -> Sequence[str]:
        if host.session.has_agent:
            return values_of(host, MODEL)
        return [*host.session.settings.profiles, *host.session.settings.aliases]

    async def do(self, host: SessionHost, argument: str) -> str:
        """Call another model once its name was looked up; let another agent call one of those that it offers."""
        if host.session.has_agent:
            return await choose_option(host, MODEL, argument)
        name = argument or await _picked_model(host)
        if not name:
            return ""
        check = await host.session.models.check(name)
        if not check.usable:
            raise ValueError(check.message)
        host.session.set_model(name)
        return check.message or f"The next call goes to {name}."


async def _picked_model(host: SessionHost) -> str:
    """Ask for one of the models that can be used now from this session, which keeps its server; empty: none."""
    from tui_agent.frontend.commands.model_offers import found_now, name_as_written

    host.say("Looking for models…")
    settings = host.session.settings
    rows = [row for row in await found_now(settings) if row.value.api_base in {"", settings.api_base}]
    remark = "No profile, no server and no provider's key was found. You may write any name."
    chosen = await host.choose("Model of the next call", rows, "" if rows else remark, name_as_written)
    return "" if chosen is None else str(chosen.model)


class Login(Command["SessionHost"]):
    name = "login"
    help = (
        "Give a provider's key, kept in the keyring of this system: the next call's provider, or the one named; "
        "`--forget` removes it"
    )
    argument = "[PROVIDER|VARIABLE] [--forget]"

    async def do(self, host: SessionHost, argument: str) -> str:
        words, models = argument.split(), host.session.models
        variable = models.key_variable(" ".join(word for word in words if word != "--forget"))
        if "--forget" in words:
            return await models.log_out(variable)
        about = "It goes into the keyring of this system and to the provider, and into no file of agent-tui."
        key = (await host.secret(f"Key for {variable}", about)).strip()
        return await models.log_in(variable, key) if key else "No key was given."


class Profile(Command["SessionHost"]):
    name = "profile"
    help = "Model profile of the next call"
    argument = "NAME"

    def choices(self, host: SessionHost) -> Sequence[str]:
        return [*host.session.settings.profiles]

    def do(self, host: SessionHost, argument: str) -> str:
        names = sorted(host.session.settings.profiles)
        if argument not in names:
            there = f"There are {', '.join(names)}." if names else "[profiles.NAME] in config.toml makes one."
            raise ValueError(f"There is no profile {argument!r}. {there}")
        host.session.set_model(argument)
        return f"The next call goes to the profile {argument}."


class Approve(Command["SessionHost"]):
    name = "approve"
    help = (
        "What asks you first: plan (edits are refused), ask (writes and commands), writes (commands only), all "
        "(nothing); alone, or Shift+Tab in the prompt: the next of them"
    )
    argument = "[MODE]"
    values = APPROVALS

    def do(self, host: SessionHost, argument: str) -> str:
        session = host.session
        mode = argument or next_approval(session.state.session.approve or session.settings.approve)
        if mode not in APPROVALS:
            raise ValueError(f"There is no mode {mode}. The modes are {', '.join(APPROVALS)}.")
        session.set_approve(Approval(mode))
        return f"{Approval(mode).words.capitalize()}."


class Permissions(Command["SessionHost"]):
    name = "permissions"
    help = (
        "Permission rules: try them, add, change, take back; `allow|ask|deny RULE [session|workspace|always]` makes "
        "one, `remove N` takes one back"
    )
    argument = "[allow|ask|deny RULE [SCOPE]|remove N]"
    values = ("allow", "ask", "deny", "remove")

    async def do(self, host: SessionHost, argument: str) -> str:
        from tui_agent.frontend.commands.rule_words import change_by_words
        from tui_agent.terminal_text import revealed_line

        if argument:
            return revealed_line(await change_by_words(host.session, host.user_file, argument), 400)
        await host.show_rules(host.user_file)
        return ""


class Breaker(Command["SessionHost"]):
    name = "breaker"
    help = "Open or close a tool's circuit breaker by hand"
    argument = "TOOL open|close"

    def choices(self, host: SessionHost) -> Sequence[str]:
        return [f"{tool} {what}" for tool in host.session.state.run.tools for what in ("open", "close")]

    def do(self, host: SessionHost, argument: str) -> str:
        tool, _, what = argument.rpartition(" ")
        if what not in {"open", "close"} or not tool:
            raise ValueError("Write /breaker TOOL open, or /breaker TOOL close.")
        host.session.set_breaker(tool.strip(), opened=what == "open")
        return ""


class Settings(Command["PromptHost"]):
    name = "settings"
    help = "Every setting and where its value comes from; change it in your own file"
    key = "f12"
    screen = early = True

    async def do(self, host: PromptHost, argument: str) -> str:
        await host.show_settings()
        return ""


class Keys(Command["PromptHost"]):
    name = "keys"
    help = "All actions with their keys; press another key for one"
    screen = early = True

    async def do(self, host: PromptHost, argument: str) -> str:
        await host.show_keys()
        return ""


class Vim(Command["PromptHost"]):
    name = "vim"
    help = "Vim keys in the prompt, for this session; `vim = true` in config.toml keeps them"
    argument = "[on|off]"
    values = ("on", "off")
    screen = early = True

    def do(self, host: PromptHost, argument: str) -> str:
        if argument not in {"", *self.values}:
            raise ValueError("Write /vim on, or /vim off.")
        if host.use_vim(argument == "on" if argument else None):
            return "Vim keys: Esc leaves insert mode, and does in normal mode what it does without Vim."
        return "The prompt's own keys."
