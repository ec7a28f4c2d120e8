"""Findings about each thing that a run needs: the fact, and the step to take.

No key is printed or sent anywhere, and nothing is contacted but the `api_base` that is configured, and that
only with an unauthenticated connection: the question is whether something listens.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from tui_agent import __version__, installed, processes
from tui_agent.config.errors import PROVIDER_KEYS, ConfigError, models_with_keys
from tui_agent.config.layers import PROJECT_FILE
from tui_agent.config.mcp_servers import load_servers
from tui_agent.config.settings import (
    Settings,
    is_read_only,
    load_settings,
    require_workspace,
    user_config_file,
)
from tui_agent.models import kept_habits
from tui_agent.models.catalogue import KnownModel, known
from tui_agent.models.discovery import missing_key
from tui_agent.models.kept_habits import KeptServer
from tui_agent.models.routes import client_for
from tui_agent.sandbox.choose import candidates, none_for, try_out
from tui_agent.sandbox.mechanisms import reach
from tui_agent.sandbox.policy import SandboxPolicy
from tui_agent.store.mcp_trust import McpTrust
from tui_agent.terminal_text import visible

Status = Literal["ok", "advice", "broken"]
REACH_TIMEOUT = 3.0
"""Seconds to wait for the model's server to accept a connection."""
LEAST_FREE = 100 * 1024 * 1024
"""Bytes that should be free on the disk of the sessions."""
COMPROMISED_LITELLM = frozenset({"1.82.7", "1.82.8", "1.107.0"})
"""Releases that carried foreign code (1.82.7, 1.82.8) or are reported to (1.107.0)."""
LITELLM = ",".join(["litellm>=1.80,<2", *(f"!={version}" for version in sorted(COMPROMISED_LITELLM))])


@dataclass(frozen=True)
class Check:
    """One finding. `todo` is empty if nothing is to be done."""

    name: str
    status: Status
    says: str
    todo: str = ""


@dataclass(frozen=True)
class Report:
    """All findings, and the settings with the place each comes from."""

    checks: tuple[Check, ...]
    settings: dict[str, dict[str, str]] = field(default_factory=dict)
    servers: tuple[KeptServer, ...] = ()
    """Habits of servers that runs have learnt."""

    @property
    def healthy(self) -> bool:
        """True if nothing must be put right before a run."""
        return all(check.status != "broken" for check in self.checks)


def examine(overrides: Mapping[str, object], config: str | None) -> Report:
    """Look at everything. Never raises: what cannot be looked at is a finding."""
    environ = os.environ
    checks = [_python(), check_litellm()]
    try:
        settings = load_settings(overrides, config, environ)
    except ConfigError as error:
        checks.append(Check("configuration", "broken", error.message, "correct the places named here"))
        return Report((*checks, check_program("git"), check_program("rg"), _terminal(environ)))
    checks += [
        _configuration(settings),
        _model(settings, environ),
        _keys(settings, environ),
        _price(settings),
        _server(settings),
        _workspace(settings),
        check_sandbox(settings),
        _state_folder(settings),
        *_habits_file(settings),
        *_mcp_servers(settings, environ),
        check_program("git", settings.workspace),
        check_program("rg", settings.workspace),
        _terminal(environ),
    ]
    return Report(tuple(checks), _described(settings), tuple(kept_habits.read(settings.state_dir)[0]))


def _described(settings: Settings) -> dict[str, dict[str, str]]:
    dumped = settings.model_dump(mode="json", by_alias=True)
    dumped["print"] = dumped.pop("print_only", dumped.get("print"))
    described = {}
    for key, source in settings.sources.items():
        value = dumped[key]
        if key == "recovery":
            value = settings.recovery.overrides()
        elif key == "hooks":
            value = {name: len(matchers) for name, matchers in value.items() if matchers}
        elif key in {"profiles", "aliases"}:
            value = ", ".join(value)
        elif key in {"parameters", "fallbacks"}:
            value = {name: set_ for name, set_ in value.items() if set_}
        elif key == "api_base" and isinstance(value, str):
            value = _without_credentials(value)
        described[key] = {"value": value if isinstance(value, str) else json.dumps(value), "source": source}
    return described


def _without_credentials(address: str) -> str:
    parts = urlsplit(address)
    if parts.username is None and parts.password is None and not parts.query:
        return address
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def _python() -> Check:
    version = platform.python_version()
    return Check("python", "ok", f"{version}, agent-tui {__version__}")


def check_litellm() -> Check:
    try:
        version = metadata.version("litellm")
    except metadata.PackageNotFoundError:
        return Check("litellm", "broken", "it is not installed", installed.packages(LITELLM))
    if version in COMPROMISED_LITELLM:
        return Check(
            "litellm",
            "broken",
            f"{version} is a compromised release",
            f"{installed.packages(LITELLM)}, then change every key this machine holds",
        )
    return Check("litellm", "ok", version)


def _configuration(settings: Settings) -> Check:
    files = [str(path) for path in (settings.workspace / PROJECT_FILE, user_config_file()) if path.exists()]
    return Check(
        "configuration", "ok", ", ".join(files) if files else f"no file (yours: {user_config_file()})"
    )


def _model(settings: Settings, environ: Mapping[str, str]) -> Check:
    if settings.model:
        means = settings.called(settings.model)
        name = settings.model if means.model == settings.model else f"{settings.model}: {means.model}"
        forced = means.profile.client if means.profile is not None else None
        client = client_for(means.model, means.api_base, forced)
        return Check("model", "ok", f"{name} ({settings.sources['model']}; called with {client})")
    present = models_with_keys(environ)
    hint = f" (there is a key for {', '.join(present)})" if present else ""
    return Check("model", "advice", f"none is chosen{hint}", '--model NAME, AGENT_TUI_MODEL or `model = "…"`')


def _keys(settings: Settings, environ: Mapping[str, str]) -> Check:
    present = [name for name in PROVIDER_KEYS.values() if environ.get(name)]
    needed = missing_key(settings.called(settings.model), environ)
    if needed:
        return Check(
            "keys", "broken", f"{settings.model} needs {needed}, which is not set", f"export {needed}=…"
        )
    if not present:
        return Check("keys", "advice", "no provider's key is set", "fine for a local server and the demos")
    return Check("keys", "ok", ", ".join(present))


def _price(settings: Settings) -> Check:
    means = settings.called(settings.model)
    own = means.price
    if own is not None:
        costs: tuple[tuple[float | None, str], ...] = (
            (own.prompt, "in"),
            (own.completion, "out"),
            (own.cached, "cached"),
        )
        source = "your configuration"
    else:
        table = KnownModel(means.model) if means.api_base else known(means.model)
        costs = ((table.input, "in"), (table.output, "out"), (table.cached, "cached"))
        source = "litellm's table"
    said = ", ".join(f"${amount:g} {of}" for amount, of in costs if amount is not None)
    if said:
        return Check("price", "ok", f"{said} a million tokens ({source})")
    if settings.max_cost is None and settings.max_session_cost is None:
        return Check("price", "ok", "not known; no limit on the cost is set")
    name = means.model or "MODEL"
    todo = f'[prices."{name}"] in your config.toml: prompt = …, completion = … (USD per million tokens)'
    return Check("price", "advice", "not known, so a limit on the cost has no effect", todo)


def _server(settings: Settings) -> Check:
    address = settings.called(settings.model).api_base
    if address is None:
        return Check("server", "ok", "the provider's own address (not contacted by this command)")
    parts = urlsplit(address)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    shown = _without_credentials(address)
    try:
        socket.create_connection((parts.hostname or "", port), REACH_TIMEOUT).close()
    except (OSError, ValueError) as error:
        why = (
            "no answer in time"
            if isinstance(error, TimeoutError)
            else getattr(error, "strerror", None) or error
        )
        return Check("server", "broken", f"{shown}: {why}", "start the server there, or correct --api-base")
    return Check("server", "ok", f"{shown} accepts connections")


def _workspace(settings: Settings) -> Check:
    try:
        folder = require_workspace(settings)
    except ConfigError as error:
        what, _, todo = error.message.partition("\n")
        return Check("workspace", "broken", what, todo)
    return Check(
        "workspace", "ok", f"{folder}{', read-only: edits would fail' if is_read_only(folder) else ''}"
    )


def _state_folder(settings: Settings) -> Check:
    folder = settings.state_dir
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return Check(
            "sessions",
            "broken",
            f"{existing} cannot be written",
            "change its rights, or name another --state-dir",
        )
    free = shutil.disk_usage(existing).free
    sessions, used = _kept(folder / "sessions")
    plural = "" if sessions == 1 else "s"
    says = f"{folder}: {sessions} session{plural}, {_size(used)}; {_size(free)} free"
    if free < LEAST_FREE:
        return Check("sessions", "broken", says, "make room, or name another --state-dir")
    if folder.is_dir() and folder.stat().st_mode & 0o077:
        return Check("sessions", "advice", f"{says}; others may look into it", f"chmod 700 {folder}")
    return Check("sessions", "ok", says)


def _habits_file(settings: Settings) -> list[Check]:
    """A fault of the file of servers' learnt habits; "" if it can be used."""
    problem = kept_habits.read(settings.state_dir)[1]
    todo = (
        "nothing: it is written anew with the next lesson, or `agent-tui doctor --forget-habits` does it now"
    )
    return [Check("habits", "advice", problem, todo)] if problem else []


def forget_habits(overrides: Mapping[str, object], config: str | None, address: str | None) -> int:
    """Forget what was learnt of the server at an address, or of all, and say what that was. Returns the exit code."""
    try:
        settings = load_settings(overrides, config, os.environ)
        gone = kept_habits.forget(settings.state_dir, address)
    except (ConfigError, OSError) as error:
        sys.stderr.write(f"agent-tui doctor: {getattr(error, 'message', None) or error}\n")
        return 2
    for server in gone:
        sys.stdout.write(f"Forgotten: {visible(_named(server))}\n")
    if not gone:
        known = ", ".join(sorted({server.server for server in kept_habits.read(settings.state_dir)[0]}))
        where = f"of {address}: there is {known or 'nothing kept'}" if address else "yet"
        sys.stdout.write(f"Nothing was learnt {visible(where)}.\n")
    return 0


def _named(server: KeptServer) -> str:
    return f"{server.server}, {server.model} (learnt on {server.learnt.isoformat()})"


def _mcp_servers(settings: Settings, environ: Mapping[str, str]) -> list[Check]:
    """The configured MCP servers; none is started. Nothing if none is configured."""
    configured = load_servers(settings.workspace, environ)
    if not configured.entries and not configured.problems:
        return []
    names = (
        ", ".join(f"{entry.name} ({entry.scope})" for entry in configured.entries) or "none that can be used"
    )
    if find_spec("mcp") is None:
        return [
            Check(
                "mcp servers", "broken", f"{names}; the package for them is missing", installed.adding("mcp")
            )
        ]
    if configured.problems:
        return [
            Check("mcp servers", "advice", "; ".join(configured.problems), "correct the entries named here")
        ]
    asks = [entry for entry in configured.entries if entry.scope == "workspace" and not entry.disabled]
    trust = McpTrust(settings.state_dir, settings.workspace)
    waiting = ", ".join(entry.name for entry in asks if not trust.trusted(entry))
    todo = f"not started before you agree: {waiting} (agent-tui mcp trust NAME)" if waiting else ""
    return [
        Check("mcp servers", "advice" if todo else "ok", f"{names}; `agent-tui mcp` connects to them", todo)
    ]


def _kept(folder: Path) -> tuple[int, int]:
    """How many sessions are in `folder`, and their bytes."""
    sessions = used = 0
    for root, _, files in os.walk(folder):
        sessions += "events.jsonl" in files
        for name in files:
            try:
                used += Path(root, name).lstat().st_size
            except OSError:
                continue
    return sessions, used


def _size(count: int) -> str:
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def check_sandbox(settings: Settings) -> Check:
    """Mechanisms that enforce the sandbox policy here, each really tried."""
    chosen = settings.sandbox
    if chosen.mode == "off":
        return Check("sandbox", "advice", "off: commands can do what you can", "--sandbox auto")
    with tempfile.TemporaryDirectory(prefix="agent-tui-") as scratch:
        policy = SandboxPolicy.around(settings.workspace, Path(scratch) / "tmp", network=chosen.network)
        policy.scratch.mkdir()
        trials = [asyncio.run(try_out(mechanism, policy)) for mechanism in candidates()]
    working = [trial.mechanism for trial in trials if not trial.why]
    others = "; ".join(f"{trial.mechanism}: {trial.why}" for trial in trials if trial.why)
    if not working:
        todo = "install bubblewrap (its program is bwrap)" if "not installed" in others else ""
        status: Status = "broken" if chosen.mode == "require" else "advice"
        return Check("sandbox", status, f"none works here ({others or none_for()})", todo)
    says = f"{working[0]}, {reach(policy)}" + (f"; also {', '.join(working[1:])}" if working[1:] else "")
    if working[0] != trials[0].mechanism:
        return Check(
            "sandbox",
            "advice",
            f"{says} ({others})",
            "bubblewrap protects more: a /tmp of its own, other processes",
        )
    return Check("sandbox", "ok", says)


_PROGRAMS = {
    "git": "diffs and checkpoints need it; install git",
    "rg": "searching is slower without it; install ripgrep",
}


def check_program(name: str, workspace: Path | None = None) -> Check:
    path = processes.own_program(name, workspace or Path.cwd())
    if path is None:
        return Check(name, "advice", "not found", _PROGRAMS[name])
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check(name, "advice", f"{path} does not run: {error}", _PROGRAMS[name])
    if done.returncode != 0:
        return Check(name, "advice", f"{path} ends with exit code {done.returncode}", _PROGRAMS[name])
    return Check(name, "ok", next(iter(done.stdout.splitlines()), path))


def _terminal(environ: Mapping[str, str]) -> Check:
    term = environ.get("TERM", "")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return Check(
            "terminal",
            "advice",
            "standard input or output is no terminal",
            "the console needs one; `run` does not",
        )
    size = shutil.get_terminal_size()
    colours = (
        "24-bit colour" if environ.get("COLORTERM", "") in {"truecolor", "24bit"} else "256 colours or fewer"
    )
    says = f"{term or 'TERM is not set'}, {size.columns}×{size.lines}, {colours}, {sys.stdout.encoding}"
    if term in {"", "dumb"}:
        return Check("terminal", "advice", says, "set TERM to what your terminal is, as xterm-256color")
    if size.columns < 80 or size.lines < 24:
        return Check("terminal", "advice", says, "80×24 or more shows all panes")
    if "utf" not in (sys.stdout.encoding or "").lower():
        return Check("terminal", "advice", says, "set LANG to a UTF-8 locale, as C.UTF-8")
    return Check("terminal", "ok", says)


_MARKS: dict[Status, str] = {"ok": "✓", "advice": "·", "broken": "✗"}


def print_report(report: Report, *, as_json: bool) -> None:
    """The report on standard output, for people or as one JSON object."""
    if as_json:
        checks = [asdict(check) for check in report.checks]
        servers = [
            {
                "server": each.server,
                "model": each.model,
                "learnt": each.learnt.isoformat(),
                "habits": each.values,
                "in_words": each.in_words,
            }
            for each in report.servers
        ]
        said = {
            "healthy": report.healthy,
            "checks": checks,
            "settings": report.settings,
            "servers": servers,
        }
        sys.stdout.write(json.dumps(said) + "\n")
        return
    width = max(len(check.name) for check in report.checks)
    for check in report.checks:
        sys.stdout.write(f"{_MARKS[check.status]} {check.name:<{width}}  {visible(check.says)}\n")
        if check.todo:
            sys.stdout.write(f"  {'':<{width}}  → {visible(check.todo)}\n")
    changed = {key: setting for key, setting in report.settings.items() if setting["source"] != "default"}
    if changed:
        sys.stdout.write("\nSettings that are not the default:\n")
    for key, setting in changed.items():
        sys.stdout.write(f"  {key} = {visible(str(setting['value']))}  ({setting['source']})\n")
    if report.servers:
        sys.stdout.write("\nLearnt of servers (--forget-habits ADDRESS forgets it):\n")
    for server in report.servers:
        sys.stdout.write(f"  {visible(_named(server))}\n")
        for words in server.in_words:
            sys.stdout.write(f"    {visible(words)}\n")
    broken = sum(check.status == "broken" for check in report.checks)
    sys.stdout.write("\nNothing is broken.\n" if not broken else f"\n{broken} to put right, marked ✗.\n")
