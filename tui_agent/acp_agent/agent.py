"""The methods of the Agent Client Protocol that a client calls, over sessions of our own engine.

A request is read by the SDK's models; what it leads to goes through `session` and `store`, as from any other front.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from acp import PROTOCOL_VERSION, schema
from acp.exceptions import RequestError
from pydantic import BaseModel, ValidationError

from tui_agent import __version__
from tui_agent.acp.wire import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, NOT_FOUND
from tui_agent.acp_agent.options import UnknownOptionError, choose
from tui_agent.acp_agent.prompts import PromptBlockError
from tui_agent.acp_agent.questions import ClientQuestions, Request
from tui_agent.acp_agent.refusals import Refused
from tui_agent.acp_agent.served import ServedSession
from tui_agent.acp_agent.updates import Announced, Update, Updates
from tui_agent.config.errors import ConfigError
from tui_agent.config.mcp_servers import ServerEntry, ServerEntryError, given_entry
from tui_agent.config.settings import load_settings, require_workspace
from tui_agent.models.hosted import KeptHost
from tui_agent.models.scenario_checks import ScenarioError
from tui_agent.session.fork import ForkChoice, fork_session
from tui_agent.session.opening import open_session
from tui_agent.store.errors import SessionError
from tui_agent.store.retention import put_away
from tui_agent.store.session_store import SessionStore
from tui_agent.terminal_text import one_line

if TYPE_CHECKING:
    from tui_agent.config.settings import Settings
    from tui_agent.frontend.arguments import ConsoleArguments
    from tui_agent.models.protocol import Model

logger = logging.getLogger(__name__)

PAGE = 50
"""Sessions in one answer to `session/list`."""
MOST_SESSIONS = 100
"""Sessions that may be open at once."""
LOGIN = "login"
"""The id of the way to log in."""

Post = Callable[[Mapping[str, Any]], None]


class _Method(NamedTuple):
    params: type[BaseModel]
    carry_out: Callable[[Any], Awaitable[dict[str, Any] | None]]


class AcpAgent:
    """One client and its sessions. `request` asks the client, `post` sends it a notification.

    `model` makes the calls in place of the one that the settings name.
    """

    def __init__(
        self, arguments: ConsoleArguments, request: Request, post: Post, model: Model | None = None
    ) -> None:
        self._arguments = arguments
        self._request = request
        self._post = post
        self._model = model
        self._hosted = KeptHost()
        self._announced: Announced | None = None
        self._sessions: dict[str, ServedSession] = {}
        self._opening = asyncio.Lock()
        self._methods = {
            "authenticate": _Method(schema.AuthenticateRequest, self._authenticate),
            "session/new": _Method(schema.NewSessionRequest, self._new),
            "session/load": _Method(schema.LoadSessionRequest, self._load),
            "session/resume": _Method(schema.ResumeSessionRequest, self._resume),
            "session/fork": _Method(schema.ForkSessionRequest, self._fork),
            "session/list": _Method(schema.ListSessionsRequest, self._list),
            "session/close": _Method(schema.CloseSessionRequest, self._close),
            "session/delete": _Method(schema.DeleteSessionRequest, self._delete),
            "session/prompt": _Method(schema.PromptRequest, self._prompt),
            "session/cancel": _Method(schema.CancelNotification, self._cancel),
            "session/set_mode": _Method(schema.SetSessionModeRequest, self._set_mode),
            "session/set_config_option": _Method(
                schema.SetSessionConfigOptionSelectRequest, self._set_config_option
            ),
        }

    async def handle(self, method: str, params: Any, is_notification: bool) -> Any:
        """Answer a request, or take a notification. Raises `RequestError` alone."""
        try:
            return await self._answered(method, {} if params is None else params)
        except RequestError:
            if is_notification:
                return None  # nobody hears of it
            raise

    async def _answered(self, method: str, params: Any) -> Any:
        """Answer a request; whatever keeps it from being carried out is a refusal in words."""
        try:
            return await self._handled(method, params)
        except RequestError:
            raise
        except ValidationError as error:
            raise Refused(INVALID_PARAMS, _in_words(error)) from error
        except (SessionError, ConfigError, ScenarioError, UnknownOptionError, PromptBlockError) as error:
            said = error.message if isinstance(error, ConfigError) else str(error)
            raise Refused(_code_of(error), said) from error
        except ValueError as error:
            raise Refused(INVALID_PARAMS, str(error)) from error
        except Exception as error:
            logger.exception("the request %s broke", one_line(method, 60))
            raise Refused(INTERNAL_ERROR, f"Internal error: {type(error).__name__}: {error}") from error

    async def _handled(self, method: str, params: Any) -> Any:
        if method == "initialize":
            return self._initialize(schema.InitializeRequest.model_validate(params), params)
        found = self._methods.get(method)
        if found is None:
            raise Refused(METHOD_NOT_FOUND, f"There is no method {one_line(method, 80)} here.")
        if self._announced is None:
            raise Refused(INVALID_REQUEST, "The first request is initialize.")
        return await found.carry_out(found.params.model_validate(params)) or {}

    # --- the connection -------------------------------------------------------------------------------------

    def _initialize(self, _: schema.InitializeRequest, params: Any) -> dict[str, Any]:
        """Agree on version 1, whatever newer one a client speaks: it goes on with it, or says that it cannot."""
        self._announced = Announced.of(params.get("clientCapabilities"))
        login = {
            "id": LOGIN,
            "type": "terminal",
            "name": "Give a provider's key",
            "description": "agent-tui acp --login asks for it in a terminal, and keeps it in the system's keyring",
            "args": ["--login"],
        }
        return {
            "protocolVersion": PROTOCOL_VERSION,
            "agentInfo": {"name": "agent-tui", "title": "agent-tui", "version": __version__},
            "authMethods": [login] if self._announced.terminal_login else [],
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": False},
                "sessionCapabilities": {name: {} for name in ("list", "resume", "fork", "close", "delete")},
            },
        }

    async def _authenticate(self, request: schema.AuthenticateRequest) -> None:
        raise Refused(
            INVALID_PARAMS,
            f"There is no login {one_line(request.method_id, 60)} over this connection. `agent-tui acp --login` in a "
            "terminal asks for a provider's key; the provider's own variable does as well.",
        )

    # --- sessions -------------------------------------------------------------------------------------------

    async def _new(self, request: schema.NewSessionRequest) -> dict[str, Any]:
        served = await self._open(request)
        return {"sessionId": served.session.id, **served.facts()}

    async def _load(self, request: schema.LoadSessionRequest) -> dict[str, Any]:
        served = await self._open(request, request.session_id)
        await served.replay(self._takes)
        return served.facts()

    async def _resume(self, request: schema.ResumeSessionRequest) -> dict[str, Any]:
        return (await self._open(request, request.session_id)).facts()

    async def _fork(self, request: schema.ForkSessionRequest) -> dict[str, Any]:
        settings = await self._settings(request.cwd)
        parent = self._sessions.get(request.session_id)
        if parent is not None:
            await parent.session.recorder.barrier()
        store = await asyncio.to_thread(SessionStore, settings.state_dir)
        folder = await self._folder(store, request.session_id)
        made = await fork_session(folder, store.sessions_dir, ForkChoice(None))
        served = await self._open(request, made.name)
        return {"sessionId": served.session.id, **served.facts()}

    async def _list(self, request: schema.ListSessionsRequest) -> dict[str, Any]:
        cursor = request.cursor or "0"
        if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
            raise Refused(INVALID_PARAMS, "The cursor is not one of ours.")
        start = int(cursor)
        settings = await self._settings(None)
        store = await asyncio.to_thread(SessionStore, settings.state_dir)
        await asyncio.to_thread(store.refresh)
        inside = None if request.cwd is None else Path(request.cwd)
        rows = [row for row in await asyncio.to_thread(store.rows, inside) if row.is_worth_listing]
        page = {
            "sessions": [
                {
                    "sessionId": row.id,
                    "cwd": row.workspace,
                    "title": one_line(row.title, 200),
                    "updatedAt": datetime.fromtimestamp(row.ended_at, UTC).isoformat(),
                }
                for row in rows[start : start + PAGE]
            ]
        }
        return page | ({"nextCursor": str(start + PAGE)} if len(rows) > start + PAGE else {})

    async def _close(self, request: schema.CloseSessionRequest) -> None:
        await self._end(self._session(request.session_id))

    async def _delete(self, request: schema.DeleteSessionRequest) -> None:
        if request.session_id in self._sessions:
            await self._end(self._sessions[request.session_id])
        settings = await self._settings(None)
        store = await asyncio.to_thread(SessionStore, settings.state_dir)
        folder = store.folder(request.session_id)
        if folder.parent == store.sessions_dir and await asyncio.to_thread(folder.is_dir):
            await asyncio.to_thread(store.delete, request.session_id, time.time())

    async def _open(
        self,
        request: schema.NewSessionRequest
        | schema.LoadSessionRequest
        | schema.ResumeSessionRequest
        | schema.ForkSessionRequest,
        wanted: str = "",
    ) -> ServedSession:
        """A new session, or the saved one that is `wanted`, which may be open already."""
        if request.additional_directories:
            raise Refused(INVALID_PARAMS, "A session works in one folder; further directories are not taken.")
        settings = await self._settings(request.cwd)
        given = _servers(request.mcp_servers or (), settings.workspace)
        async with self._opening:
            served = self._sessions.get(wanted) or await self._opened(settings, wanted, given)
        # The client knows of the session once it has the answer.
        asyncio.get_running_loop().call_soon(served.begin_to_serve)
        return served

    async def _opened(self, settings: Settings, wanted: str, given: Sequence[ServerEntry]) -> ServedSession:
        if len(self._sessions) >= MOST_SESSIONS:
            raise Refused(INVALID_REQUEST, f"{MOST_SESSIONS} sessions are open; close one first.")
        folder = None
        if wanted:
            store = await asyncio.to_thread(SessionStore, settings.state_dir)
            folder = await self._folder(store, wanted)
        questions = ClientQuestions(self._request, self._takes)
        session = await open_session(settings, questions.operator, self._model, folder, hosted=self._hosted)
        if session.state.session.workspace != str(settings.workspace):
            await session.close()
            there = session.state.session.workspace
            raise Refused(INVALID_PARAMS, f"The session works in {there}, not in {settings.workspace}.")

        def post(update: Update) -> None:
            self._post({"sessionId": session.id, "update": update})

        questions.begin(session.id, post, lambda: session.state)
        updates = Updates(settings.workspace, self._takes)
        served = ServedSession(session, questions, updates, post, self._arguments)
        self._sessions[session.id] = served
        await served.find_models()
        session.mcp.connect(given=given)
        if settings.model:
            session.warm_up()
        return served

    async def _settings(self, cwd: str | None) -> Settings:
        """The settings of a session in this folder. Raises `ConfigError`."""
        overrides = dict(self._arguments.overrides)
        if cwd is not None:
            folder = Path(cwd)
            if not folder.is_absolute():
                raise Refused(INVALID_PARAMS, f"cwd is an absolute path, not {one_line(cwd, 100)!r}.")
            overrides["workspace"] = await asyncio.to_thread(folder.resolve)
        settings = await asyncio.to_thread(load_settings, overrides, self._arguments.config)
        if cwd is not None:
            require_workspace(settings)
        return settings

    async def _folder(self, store: SessionStore, session_id: str) -> Path:
        folder = store.folder(session_id)
        if folder.parent != store.sessions_dir or not await asyncio.to_thread(folder.is_dir):
            raise Refused(NOT_FOUND, f"There is no session {one_line(session_id, 80)}.")
        return folder

    async def _end(self, served: ServedSession) -> None:
        self._sessions.pop(served.session.id, None)
        settings = served.session.settings
        await served.close()
        await put_away(settings.state_dir, served.session.id, settings.retention_days, time.time())

    def _session(self, session_id: str) -> ServedSession:
        served = self._sessions.get(session_id)
        if served is None:
            said = f"The session {one_line(session_id, 80)} is not open; session/load or session/resume opens it."
            raise Refused(NOT_FOUND, said)
        return served

    @property
    def _takes(self) -> Announced:
        return self._announced or Announced()

    # --- turns ----------------------------------------------------------------------------------------------

    async def _prompt(self, request: schema.PromptRequest) -> dict[str, Any]:
        return await self._session(request.session_id).prompt(request.prompt)

    async def _cancel(self, notification: schema.CancelNotification) -> None:
        await self._session(notification.session_id).cancel()

    async def _set_mode(self, request: schema.SetSessionModeRequest) -> None:
        await choose(self._session(request.session_id).session, "mode", request.mode_id)

    async def _set_config_option(self, request: schema.SetSessionConfigOptionSelectRequest) -> dict[str, Any]:
        served = self._session(request.session_id)
        await choose(served.session, request.config_id, request.value)
        return {"configOptions": served.options}

    # --- the end --------------------------------------------------------------------------------------------

    async def close(self) -> list[str]:
        """End every session; what could not be saved, in words."""
        ended = await asyncio.gather(*map(self._end, [*self._sessions.values()]), return_exceptions=True)
        await self._hosted.end()
        return [str(fault) for fault in ended if isinstance(fault, Exception)]


def _servers(given: Sequence[BaseModel], workspace: Path) -> list[ServerEntry]:
    """The MCP servers of a client, which are its user's own. Raises `Refused`."""
    entries = []
    for server in given:
        name = str(getattr(server, "name", ""))
        match server:
            case schema.McpServerStdio():
                written: dict[str, Any] = {
                    "command": server.command,
                    "args": server.args,
                    "env": {one.name: one.value for one in server.env},
                }
            case schema.HttpMcpServer():
                headers = {one.name: one.value for one in server.headers}
                written = {"type": "http", "url": server.url, "headers": headers}
            case _:
                said = f"The MCP server {one_line(name, 60)} is reached in a way that was not announced."
                raise Refused(INVALID_PARAMS, said)
        try:
            entries.append(given_entry(name, written, workspace))
        except ServerEntryError as error:
            raise Refused(INVALID_PARAMS, f"The MCP server {one_line(name, 60)}: {error}.") from error
    return entries


def _code_of(error: Exception) -> int:
    wrong = isinstance(error, UnknownOptionError | PromptBlockError)
    return INVALID_PARAMS if wrong else INTERNAL_ERROR


def _in_words(error: ValidationError) -> str:
    """Say what is wrong with parameters: the first finding."""
    found = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, found['loc'])) or 'params'}: {one_line(found['msg'], 200)}"
