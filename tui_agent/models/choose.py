"""Which model a name means: what the settings say of profiles and aliases; then `scripted:NAME` a scenario, anything
else a model that the host process calls.

The choice is made again for each call, so that a model can be changed in mid-session and a fallback be of another
kind. A profile's parameters join the request here. Nothing heavy is imported before it is needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NamedTuple

from tui_agent.config.profiles import ModelParameters, Price
from tui_agent.core.names import FaultKind
from tui_agent.core.values import Fault
from tui_agent.models.host_start import SCRIPTED, Begun, first_client, host_command
from tui_agent.models.hosted import HostedModel
from tui_agent.models.protocol import Delta, Model, ModelFault, ModelRequest, Reply
from tui_agent.models.scenario_checks import ScenarioError
from tui_agent.models.usage import cost

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings


class NameCheck(NamedTuple):
    """Facts about a model's name: `message` if something is odd."""

    usable: bool = True
    message: str = ""


def own_host(settings: Settings, begun: Begun | None = None) -> HostedModel:
    """A model host as the settings want it; `begun`: one that begins already."""
    return HostedModel(command=command_for(settings), begun=begun)


def command_for(settings: Settings) -> list[str]:
    """The command line of a host whose first client is that of the chosen model."""
    means = settings.called(settings.model)
    forced = means.profile.client if means.profile is not None else None
    return host_command(first_client(means.model, means.api_base, forced))


class ModelByName:
    """A `Model` that hands each call to the one its name means, made when it is first needed."""

    def __init__(self, settings: Settings, hosted: Model | None = None) -> None:
        """Starts no process yet; `hosted` makes the calls in place of a host of its own.

        Raises `ScenarioError` when the chosen model is a scenario that cannot be used.
        """
        self._settings = settings
        self._made: dict[str, Model] = {} if hosted is None else {"": hosted}
        if settings.called(settings.model).model.startswith(SCRIPTED):
            self.named(settings.model)

    def named(self, name: str) -> Model:
        """The model for a name: one for each scenario, one host for all others. Raises `ScenarioError`."""
        model = self._settings.called(name).model
        key = model if model.startswith(SCRIPTED) else ""
        if key not in self._made:
            self._made[key] = _scripted(key) if key else self._hosted()
        return self._made[key]

    def stream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """See `protocol.Model`."""
        stream = self._or_fault(request.model).stream(self._as_called(request))
        price = self._settings.called(request.model).price
        return stream if price is None else _priced(stream, price)

    def _as_called(self, request: ModelRequest) -> ModelRequest:
        """The request with what its model's name stands for."""
        means = self._settings.called(request.model)
        changes: dict[str, Any] = {
            "model": means.model,
            "api_base": means.api_base,
            "parameters": _fitted(means.parameters, request),
            "state_folder": str(self._settings.state_dir),
        }
        profile = means.profile
        if profile is not None:
            silence = profile.model_timeout or request.silence_timeout
            changes |= {
                "api_key_variable": profile.api_key_variable,
                "client": profile.client,
                "prompt_caching": profile.prompt_caching,
                "extra_headers": profile.extra_headers,
                "extra_body": profile.extra_body,
                "silence_timeout": silence,
                "prompt_timeout": None if profile.model_timeout else request.prompt_timeout,
                "total_timeout": profile.total_timeout or max(request.total_timeout, silence),
            }
        return request.model_copy(update=changes)

    async def check(self, name: str) -> NameCheck:
        """Check if a name can be used, as far as that is known without calling the model."""
        means = self._settings.called(name)
        try:
            model = self.named(name)
        except ScenarioError as error:
            return NameCheck(usable=False, message=str(error))
        if means.profile is not None or not isinstance(model, HostedModel):
            return NameCheck()
        found = await model.look_up(means.model)
        if found is None or found.listed:
            return NameCheck()
        near = f" The nearest in its list: {', '.join(found.nearest)}." if found.nearest else ""
        if not found.provider:
            message = f"no provider is known for {name!r}: name a model as provider/model.{near}"
            return NameCheck(usable=False, message=message)
        if means.api_base is not None:
            return NameCheck()
        return NameCheck(message=f"litellm does not list {name!r}; it is used anyway.{near}")

    async def sees(self, name: str) -> bool:
        """False for a model that is known to see no images. May take as long as the model host's start."""
        means = self._settings.called(name)
        try:
            model = self.named(name)
        except ScenarioError:
            return True
        found = await model.look_up(means.model, means.api_base) if isinstance(model, HostedModel) else None
        return found is None or found.sees

    async def use_key(self, variable: str, key: str) -> None:
        """Make calls with this key from now on; empty: without one."""
        host = self._made.setdefault("", self._hosted())
        if isinstance(host, HostedModel):
            await host.use_key(variable, key)

    async def start(self) -> None:
        """See `protocol.Model`."""
        await self._or_fault(self._settings.model).start()

    async def context_tokens(
        self, model: str, api_base: str | None = None, api_key_variable: str | None = None
    ) -> int | None:
        """See `protocol.Model`; a profile's own budget if it has one."""
        means = self._settings.called(model)
        if means.profile is not None and means.profile.context_tokens is not None:
            return means.profile.context_tokens
        try:
            own_key = api_key_variable if means.profile is None else means.profile.api_key_variable
            base = api_base or means.api_base
            return await self.named(model).context_tokens(means.model, base, own_key)
        except ScenarioError:
            return None

    async def close(self) -> None:
        """See `protocol.Model`."""
        self._made.setdefault(
            "", self._hosted()
        )  # a question that comes later finds it closed and begins none
        ended = await asyncio.gather(
            *(model.close() for model in self._made.values()), return_exceptions=True
        )
        for fault in ended:
            if fault is not None:
                raise fault

    def _hosted(self) -> Model:
        return own_host(self._settings)

    def _or_fault(self, name: str) -> Model:
        try:
            return self.named(name)
        except ScenarioError as error:
            fault = Fault(kind=FaultKind.NOT_FOUND, message=str(error), advice="Choose another model.")
            raise ModelFault(fault) from error


def _fitted(parameters: ModelParameters, request: ModelRequest) -> ModelParameters:
    """The parameters, allowing as long a reply as the request needs, and no longer one than it may have."""
    longest, room, bound = parameters.max_tokens, request.reply_room, request.parameters.max_tokens
    if bound is not None:
        longest = min(bound, longest or bound)
    elif longest is not None and room is not None:
        longest = max(longest, room)
    return (
        parameters
        if longest == parameters.max_tokens
        else parameters.model_copy(update={"max_tokens": longest})
    )


async def _priced(
    stream: AsyncGenerator[Delta | Reply, None], price: Price
) -> AsyncGenerator[Delta | Reply, None]:
    """The same stream, whose reply costs what the configuration says."""
    async with aclosing(stream) as pieces:
        async for piece in pieces:
            if isinstance(piece, Reply):
                counts = piece.prompt_tokens, piece.completion_tokens, piece.cached_tokens
                yield piece.model_copy(update={"cost": cost(price, *counts)})
            else:
                yield piece


def _scripted(name: str) -> Model:
    from tui_agent.models.scenario_file import load_scenario
    from tui_agent.models.scripted import ScriptedModel

    return ScriptedModel(load_scenario(name.removeprefix(SCRIPTED)))
