"""The MCP servers that a person or a checkout configures, read from files of the shape that many programs share.

`.mcp.json` of the workspace and `mcp.json` beside the user's `config.toml` hold an object `mcpServers`: a name for each
server, and its command (`command`, `args`, `env`, `cwd`) or its address (`url`, `headers`, `oauth`). What is wrong with
an entry is said and costs that entry alone. Nothing is started here.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from tui_agent import untrusted_files
from tui_agent.disk import replace_whole, user_path
from tui_agent.secret_names import named_like_a_secret
from tui_agent.terminal_text import one_line, visible

WORKSPACE_FILE = ".mcp.json"
USER_FILE = "mcp.json"
SECTION = "mcpServers"
MOST_SERVERS = 50
CALL_LIMIT = 120.0
"""Seconds without a sign of life after which a call is given up if the entry has no `timeout`."""

_LARGEST_FILE = 1_000_000
_LONGEST_NAME = 64
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_HTTP = frozenset({"http", "streamable-http", "streamable_http", "streamableHttp"})
_CREDENTIALS = re.compile(r"//[^/@\s]*@")
"""A name and a password in an address."""
_PARAMETER = re.compile(r"([?&])([^=&]+)=([^&#]+)")
_SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
_KEYS = frozenset(
    {"type", "command", "args", "env", "cwd", "url", "headers", "oauth", "timeout", "disabled", "description"}
)
_OAUTH_TEXTS = ("clientId", "clientSecret", "clientMetadataUrl", "scopes")

Scope = Literal["user", "workspace"]


class ServerEntryError(ValueError):
    """An entry, or a whole file, cannot be used; the message says what is wrong and what is allowed."""


@dataclass(frozen=True)
class OAuthClient:
    """The client as which a login is made, as far as the entry says; the rest is agreed with the server."""

    client_id: str = ""
    """Registered beforehand; empty: it is registered at the login."""
    client_secret: str = ""
    metadata_url: str = ""
    """The address of a client ID metadata document."""
    callback_port: int = 0
    """The port of this machine that the browser comes back to; 0: any."""
    scopes: str = ""
    """Empty: those that the server asks for."""


@dataclass(frozen=True)
class ServerEntry:
    """One server as configured, with its variables expanded. `written` is the entry as it stands in the file."""

    name: str
    scope: Scope
    file: Path
    written: Mapping[str, Any]
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    oauth: OAuthClient = field(default_factory=OAuthClient)
    call_limit: float = CALL_LIMIT
    disabled: bool = False
    variables: tuple[str, ...] = ()
    """The variables of ours that the entry takes, by name."""

    @property
    def digest(self) -> str:
        """The text that the operator trusts: the entry as written, whatever the variables hold."""
        said = {
            key: value for key, value in self.written.items() if key in _KEYS - {"disabled", "description"}
        }
        text = json.dumps([self.name, said], sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def logs_in(self) -> bool:
        """A login can be made for it: it has an address, and the entry brings no authorization of its own."""
        return bool(self.url) and not any(name.lower() == "authorization" for name in self.headers)

    @property
    def shown(self) -> str:
        """The command line or the address as written: variables by name, so that no secret is shown."""
        if self.url:
            url = _CREDENTIALS.sub("//(credentials)@", str(self.written.get("url", "")))
            return visible(_PARAMETER.sub(_without_value, url))
        words = [self.written.get("command", ""), *self.written.get("args", ())]
        return visible(" ".join(_quoted(str(word)) for word in words))

    @property
    def details(self) -> list[str]:
        """Further facts that an operator should see before the server is started, a line each."""
        lines = []
        if self.written.get("cwd"):
            lines.append(f"in the folder {self.written['cwd']}")
        for key, what in (("env", "variable"), ("headers", "header"), ("oauth", "login")):
            table = self.written.get(key) or {}
            lines += [f"{what} {name}: {_unless_secret(name, value)}" for name, value in table.items()]
        if self.variables:
            lines.append(f"takes from your environment: {', '.join(self.variables)}")
        return [visible(line) for line in lines]

    @property
    def secrets(self) -> dict[str, str]:
        """Values that must not reach the disk: of variables and headers, by the name that a mask shows."""
        parts = urlsplit(self.url)
        found = {
            name: value.removeprefix("Bearer ").strip()
            for name, value in {**self.env, **self.headers}.items()
            if _holds_a_secret(name, value, self.written)
        }
        if self.oauth.client_secret:
            found["clientSecret"] = self.oauth.client_secret
        found |= {name: value for name, value in parse_qsl(parts.query) if named_like_a_secret(name)}
        if parts.password:
            found["password"] = unquote(parts.password)
        return {re.sub(r"[^\w.-]", "_", f"{self.name}.{name}"): value for name, value in found.items()}


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"[\w@%+=:,./${}-]+", word) else "'" + word.replace("'", "'\\''") + "'"


def _without_value(match: re.Match[str]) -> str:
    """A parameter of an address; a literal secret in it is hidden."""
    secret = named_like_a_secret(match[2]) and not _VARIABLE.fullmatch(match[3])
    return f"{match[1]}{match[2]}=(not shown)" if secret else match[0]


def _secret_by_name(name: str) -> bool:
    return named_like_a_secret(name) or name.lower() in _SECRET_HEADERS


def _unless_secret(name: str, value: object) -> str:
    """The value as written if it names variables only; a literal one that looks like a secret stays hidden."""
    text = str(value)
    literal = _VARIABLE.sub("", text).removeprefix("Bearer").strip()
    return "(a value that is not shown)" if literal and _secret_by_name(name) else text


def _holds_a_secret(name: str, value: str, written: Mapping[str, Any]) -> bool:
    if _secret_by_name(name):
        return bool(value)
    raw = next((table[name] for key in ("env", "headers") if name in (table := written.get(key) or {})), "")
    return any(named_like_a_secret(match[1]) for match in _VARIABLE.finditer(str(raw)))


@dataclass(frozen=True)
class ConfiguredServers:
    """All entries by name, the user's before the workspace's, and what is wrong in the files."""

    entries: tuple[ServerEntry, ...] = ()
    problems: tuple[str, ...] = ()

    def get(self, name: str) -> ServerEntry | None:
        return next((entry for entry in self.entries if entry.name == name), None)


def user_file() -> Path:
    """The user's own list of servers, whether it exists or not."""
    from tui_agent.config.settings import user_config_file

    return user_config_file().with_name(USER_FILE)


def load_servers(
    workspace: Path, environ: Mapping[str, str] | None = None, user: Path | None = None
) -> ConfiguredServers:
    """Read both files. If both have a name, the user's own entry counts. Never raises."""
    environ = os.environ if environ is None else environ
    found: dict[str, ServerEntry] = {}
    problems: list[str] = []
    places: tuple[tuple[Scope, Path], ...] = (
        ("user", user_file() if user is None else user),
        ("workspace", workspace / WORKSPACE_FILE),
    )
    for scope, file in places:
        try:
            table = read_file(file)
        except ServerEntryError as error:
            problems.append(f"{file}: {error}")
            continue
        for name, written in list(table.items())[:MOST_SERVERS]:
            if name in found:
                problems.append(
                    f"{file}: {one_line(name, 80)}: your own entry of that name counts, not this one"
                )
                continue
            try:
                found[name] = _entry(name, written, scope, file, workspace, environ)
            except ServerEntryError as error:
                problems.append(f"{file}: {one_line(str(name), 80)}: {error}")
        if len(table) > MOST_SERVERS:
            problems.append(f"{file}: it names {len(table)} servers; the first {MOST_SERVERS} are used")
    return ConfiguredServers(tuple(found.values()), tuple(problems))


def read_file(file: Path) -> dict[str, Any]:
    """The entries of a file as written; {} if there is no file. Raises `ServerEntryError`."""
    if not os.path.lexists(file):
        return {}
    try:
        if not file.is_file():
            raise ServerEntryError("it is not a file")
        if file.stat().st_size > _LARGEST_FILE:
            raise ServerEntryError(f"it is larger than {_LARGEST_FILE:,} bytes")
        document = json.loads(untrusted_files.content(file, _LARGEST_FILE).decode("utf-8-sig"))
    except OSError as error:
        raise ServerEntryError(f"it cannot be read: {error.strerror or error}") from error
    except RecursionError as error:
        raise ServerEntryError("it is nested too deeply") from error
    except ValueError as error:
        if isinstance(error, ServerEntryError):
            raise
        raise ServerEntryError(f"it is not valid JSON: {one_line(str(error))}") from error
    servers = document.get(SECTION, {}) if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise ServerEntryError(f'it must be an object with "{SECTION}", itself an object of servers by name')
    return servers


def write_entry(file: Path, name: str, written: Mapping[str, Any] | None) -> bool:
    """Put an entry into a file, or take it out (None); all else in it stays. False: there was none to take out.

    Raises `ServerEntryError` if the file cannot be read, `OSError` if it cannot be written.
    """
    servers = dict(read_file(file))
    document: dict[str, Any] = (
        json.loads(untrusted_files.content(file, _LARGEST_FILE).decode("utf-8-sig"))
        if servers or file.exists()
        else {}
    )
    if written is None:
        if name not in servers:
            return False
        del servers[name]
    else:
        servers[name] = dict(written)
    document[SECTION] = servers
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_whole(file, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    return True


def given_entry(name: str, written: Mapping[str, Any], workspace: Path) -> ServerEntry:
    """The entry of a server that a client gives for a session, whose user stands for it. Raises `ServerEntryError`.

    Its texts are taken as they are: no variable of ours stands for any part of them.
    """
    return _entry(name, written, "user", workspace / "(given by the client)", workspace, None)


def check_entry(name: str, written: object) -> None:
    """Raises `ServerEntryError` unless the entry could be used; unset variables are no error."""
    _entry(name, written, "user", Path(USER_FILE), Path.cwd(), _AnyVariable())


class _AnyVariable(dict[str, str]):
    def get(self, key: str, default: Any = None) -> Any:
        return "x"


def _entry(
    name: object,
    written: object,
    scope: Scope,
    file: Path,
    workspace: Path,
    environ: Mapping[str, str] | None,
) -> ServerEntry:
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise ServerEntryError(f"a name has 1 to {_LONGEST_NAME} printable characters")
    if not isinstance(written, dict):
        raise ServerEntryError("it must be an object")
    kind = _kind(written)
    taken: dict[str, str | None] = {}
    expand = _expander(environ, taken)
    if kind == "stdio":
        folder = expand(_text(written, "cwd")) if written.get("cwd") else ""
        made = ServerEntry(
            name, scope, file, written,
            command=expand(_text(written, "command")),
            args=tuple(map(expand, _texts(written, "args"))),
            env={key: expand(value) for key, value in _table(written, "env").items()},
            cwd=(file.parent if scope == "user" else workspace) / user_path(folder) if folder else workspace,
        )  # fmt: skip
        if any("\0" in word for word in (made.command, *made.args, *made.env, *made.env.values())):
            raise ServerEntryError("a command line cannot hold a NUL character")
    else:
        made = ServerEntry(
            name, scope, file, written,
            url=expand(_text(written, "url")),
            headers={key: expand(value) for key, value in _table(written, "headers").items()},
            oauth=_oauth_client(written, expand),
        )  # fmt: skip
    missing = sorted(variable for variable, value in taken.items() if value is None)
    if missing:
        plural = "s" if len(missing) > 1 else ""
        raise ServerEntryError(
            f"it needs the variable{plural} {', '.join(missing)}, not set; export, or write ${{NAME:-default}}"
        )
    if kind == "http":
        _check_address(made)
    limit = written.get("timeout", CALL_LIMIT * 1000)
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit < 1e9:
        raise ServerEntryError("timeout is a number of milliseconds")
    disabled = written.get("disabled", False)
    if not isinstance(disabled, bool):
        raise ServerEntryError("disabled is true or false")
    return replace(made, call_limit=limit / 1000, disabled=disabled, variables=tuple(sorted(taken)))


def _kind(written: Mapping[str, Any]) -> Literal["stdio", "http"]:
    kind = written.get("type") or ("http" if "url" in written and "command" not in written else "stdio")
    if kind == "stdio":
        if not written.get("command"):
            raise ServerEntryError('it needs a "command" (and "args"), or a "url"')
        return "stdio"
    if kind in _HTTP:
        if not written.get("url"):
            raise ServerEntryError('it needs a "url"')
        return "http"
    if kind == "sse":
        raise ServerEntryError('the transport "sse" is obsolete; give the streamable HTTP address, as "http"')
    raise ServerEntryError('type must be "stdio" or "http"')


def _text(written: Mapping[str, Any], key: str) -> str:
    value = written.get(key)
    if not isinstance(value, str) or not value:
        raise ServerEntryError(f"{key} must be a text")
    return value


def _texts(written: Mapping[str, Any], key: str) -> list[str]:
    value = written.get(key) or []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ServerEntryError(f"{key} must be a list of texts")
    return value


def _table(written: Mapping[str, Any], key: str) -> dict[str, str]:
    value = written.get(key) or {}
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise ServerEntryError(f"{key} must be an object of texts")
    return value


def _oauth_client(written: Mapping[str, Any], expand: Callable[[str], str]) -> OAuthClient:
    table = written.get("oauth") or {}
    if not isinstance(table, dict):
        raise ServerEntryError("oauth must be an object")
    port = table.get("callbackPort", 0)
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65_536:
        raise ServerEntryError("callbackPort is the number of a port")
    texts = {key: expand(_text(table, key)) for key in _OAUTH_TEXTS if key in table}
    if not texts.get("clientMetadataUrl", "https://").startswith("https://"):
        raise ServerEntryError("clientMetadataUrl must be an address that begins with https://")
    if "clientSecret" in texts and "clientId" not in texts:
        raise ServerEntryError("clientSecret is of no use without a clientId")
    return OAuthClient(
        texts.get("clientId", ""),
        texts.get("clientSecret", ""),
        texts.get("clientMetadataUrl", ""),
        port,
        texts.get("scopes", ""),
    )


def _check_address(entry: ServerEntry) -> None:
    try:
        parts = urlsplit(entry.url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or not entry.url.isprintable():
        raise ServerEntryError("url must be an address as https://example.org/mcp")
    for name, value in entry.headers.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or not (
            value.isascii() and value.isprintable()
        ):
            raise ServerEntryError(f"the header {one_line(name, 60)} holds characters that no header may")


def _expander(environ: Mapping[str, str] | None, taken: dict[str, str | None]) -> Callable[[str], str]:
    """A function that replaces `${NAME}` and `${NAME:-default}` and adds each name that was asked for to
    `taken`. Without variables it leaves a text as it is.
    """
    if environ is None:
        return lambda text: text

    def one(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        value = environ.get(name) or default
        taken[name] = value
        return value or ""

    return lambda text: _VARIABLE.sub(one, text)
