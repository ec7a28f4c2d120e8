"""What is kept of a login: in the keyring of this system alone, for one address of a server and one issuer.

Without a keyring it is kept in memory, until the session ends.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from mcp.client.auth.utils import union_scopes
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import BaseModel, ConfigDict, ValidationError

from tui_agent import keychain
from tui_agent.config.mcp_servers import ServerEntry
from tui_agent.tools.mcp.oauth.exchange import host_of

_LOCK = "mcp-login.lock"
_LOCK_WAIT, _LOCK_STEP = 60.0, 0.05
_EARLY = 0.9
"""The share of a token's life after which it is renewed."""


class Credentials(BaseModel):
    """A login. Nothing of it is for people."""

    model_config = ConfigDict(frozen=True)

    server: str
    resource: str
    issuer: str
    token_endpoint: str
    revocation_endpoint: str = ""
    client: OAuthClientInformationFull
    token: OAuthToken | None = None
    """None: it was refused, and the client stays registered."""
    renew_at: float | None = None
    """In seconds since the epoch; None: when the server refuses it."""
    wanted: str = ""
    """Scopes that the server has asked for since."""

    def with_token(self, token: OAuthToken | None) -> Credentials:
        """The same login with another token; what the answer leaves out stays as it was."""
        before = self.token
        if token is not None and before is not None:
            left_out = {
                name: getattr(before, name) for name in ("scope", "refresh_token") if not getattr(token, name)
            }
            token = token.model_copy(update=left_out)
        wanted = self.wanted
        if token is None and before is not None:
            wanted = union_scopes(before.scope, wanted) or ""
        lasts = None if token is None or token.expires_in is None else token.expires_in * _EARLY
        renew_at = None if lasts is None else time.time() + lasts
        return self.model_copy(update={"token": token, "renew_at": renew_at, "wanted": wanted})

    @property
    def due(self) -> bool:
        """The token is better renewed before it is used."""
        return self.renew_at is not None and time.time() >= self.renew_at

    @property
    def secrets(self) -> dict[str, str]:
        """Values that must not be seen, by the name that a mask shows."""
        token = self.token
        values = {
            "access_token": token and token.access_token,
            "refresh_token": token and token.refresh_token,
            "client_secret": self.client.client_secret,
        }
        return {name: value for name, value in values.items() if value}


class KeptLogin:
    """The login to one server. `mask` is told of every secret before anything is done with it."""

    def __init__(
        self, entry: ServerEntry, lock_folder: Path, mask: Callable[[Mapping[str, str]], None]
    ) -> None:
        self._entry = entry
        self._lock_file = lock_folder / _LOCK
        self._mask = mask
        self._busy = asyncio.Lock()
        self._now: Credentials | None = None
        self._read = False
        self._in_keyring = False
        digest = hashlib.sha256(entry.url.encode()).hexdigest()[:16]
        self._name = f"mcp {host_of(entry.url)} {digest}"

    async def load(self, *, again: bool = False) -> Credentials | None:
        """The login as it is known here; `again`: as the keyring has it now, which other processes change."""
        if again or not self._read:
            text = await asyncio.to_thread(keychain.stored, self._name)
            self._read = True
            if text is not None:
                self._take(text)
            elif self._in_keyring:
                self._now = None  # another process has logged out
            self._in_keyring = text is not None
        return self._now

    def _take(self, text: str) -> None:
        with suppress(ValidationError):
            found = Credentials.model_validate_json(text)
            if found.server == self._entry.url:
                self._learn(found)

    def _learn(self, credentials: Credentials) -> None:
        self._mask({f"{self._entry.name}.{name}": value for name, value in credentials.secrets.items()})
        self._now, self._read = credentials, True

    async def save(self, credentials: Credentials) -> str:
        """Keep it; the reason if only memory could. The keyring is never left with an older one than is known."""
        self._learn(credentials)
        try:
            await asyncio.to_thread(keychain.keep, self._name, credentials.model_dump_json(exclude_none=True))
        except keychain.NoKeyringError as error:
            return str(error)
        self._in_keyring = True
        return ""

    async def want(self, scopes: str) -> None:
        """The next login is to ask for these scopes too."""
        now = await self.load()
        wanted = union_scopes(now.wanted, scopes) if now is not None else None
        if now is not None and wanted and wanted != now.wanted:
            await self.save(now.model_copy(update={"wanted": wanted}))

    async def forget(self) -> bool:
        """Forget it; False: there was none. Raises `NoKeyringError`."""
        there, self._now, self._in_keyring = self._now is not None, None, False
        return await asyncio.to_thread(keychain.forget, self._name) or there

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Among all tasks and processes: two that renew one token at once are taken for thieves.

        Raises `TimeoutError`.
        """
        async with self._busy:
            self._lock_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self._lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                async with asyncio.timeout(_LOCK_WAIT):
                    await _locked(descriptor)
                yield
            finally:
                os.close(descriptor)


async def _locked(descriptor: int) -> None:
    """By polling: a `flock` that waits in a thread could not be cancelled."""
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        await asyncio.sleep(_LOCK_STEP)
