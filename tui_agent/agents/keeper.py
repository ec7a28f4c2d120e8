"""The process that knows the conversations of other agents and answers their hooks; it ends when nobody comes.

One for each user, at a socket that only that user can open. Events are taken one after another, so that the hooks of
one batch, which run at once, cannot get between each other. Its death loses nothing: the next one reads the journals.
"""

from __future__ import annotations

import fcntl
import json
import logging
import logging.handlers
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, cast, get_args

from tui_agent.agents import dialects
from tui_agent.agents.advisor import Advice, Advise, Lane, lane_folder
from tui_agent.agents.dialect import Dialect, Heard
from tui_agent.config.settings import Settings, load_settings
from tui_agent.store.journal import sessions_folder
from tui_agent.store.redaction import Redactor

STAY = 600.0
"""Seconds after the last event."""
_PATIENCE = 2.0
"""Seconds for a hook to say what it has to say."""
_LANES = 64
"""Conversations that are kept in memory; the others are read again when they go on."""
LOG = "hooks.log"
"""In the state folder: errors of ours, and one line for each answer."""

logger = logging.getLogger("tui_agent.hooks")


class Keeper:
    """The lanes, and what is answered to each event."""

    def __init__(self) -> None:
        self._lanes: dict[tuple[str, str, str, str], Lane] = {}

    def answer(self, words: list[str], event: bytes) -> dict[str, Any]:
        """The answer to an event, {} for none. `words`: agent, advise, policy, folder, variables. Never raises."""
        try:
            agent, advise, policy, folder, *variables = words
            environment = dict(variable.split("=", 1) for variable in variables)
            settings = _settings(folder, tuple(sorted(environment.items())))
        except Exception:
            logger.exception("an event without settings")
            return {}
        _log_to(settings.state_dir)
        try:
            return self._answer(agent, _advise(advise), policy, settings, event)
        except Exception:
            logger.exception("an event of %s was not understood", agent or "an agent")
            return {}

    def _answer(self, agent: str, advise: Advise, policy: str, settings: Settings, event: bytes) -> dict[str, Any]:
        record = json.loads(event)
        dialect = dialects.named(agent) if agent else dialects.of(record)
        heard = dialect.read(record)
        if heard is None:
            return {}
        now = time.time()
        advice = self._lane(dialect, heard, policy, settings, now).hear(heard, now, advise)
        answer = _formed(dialect, heard, advice)
        if answer:
            kind = next(name for name in ("ask", "refuse", "go_on", "note") if getattr(advice, name))
            logger.info("%s %s: %s", dialect.name, heard.event, kind)
        return answer

    def _lane(self, dialect: Dialect, heard: Heard, policy: str, settings: Settings, now: float) -> Lane:
        sessions = sessions_folder(settings.state_dir)
        key = (str(sessions), dialect.name, heard.session, heard.lane)
        lane = self._lanes.pop(key, None)
        if lane is None:
            chosen = settings.recovery_policy() if not policy else policy
            folder = lane_folder(sessions, *key[1:], now)
            lane = Lane(folder, heard, dialect, chosen, Redactor.from_environment(os.environ), now)
        self._lanes[key] = lane
        while len(self._lanes) > _LANES:
            self._lanes.pop(next(iter(self._lanes))).close()
        return lane


def _formed(dialect: Dialect, heard: Heard, advice: Advice) -> dict[str, Any]:
    forms = dialect.answers
    if advice.ask and forms.ask is not None:
        return forms.ask(heard.event, advice.ask)
    if advice.refuse:
        return forms.refuse(heard.event, advice.refuse)
    if advice.go_on and forms.go_on is not None:
        return forms.go_on(heard.event, advice.go_on)
    return forms.note(heard.event, advice.note) if advice.note else {}


def _advise(text: str) -> Advise:
    return cast("Advise", text) if text in get_args(Advise) else "refuse"


@lru_cache(maxsize=64)
def _settings(folder: str, environment: tuple[tuple[str, str], ...]) -> Settings:
    return load_settings({"workspace": folder}, environ=dict(environment), cwd=Path(folder))


@lru_cache(maxsize=8)
def _log_to(state_dir: Path) -> None:
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    handler = logging.handlers.RotatingFileHandler(state_dir / LOG, maxBytes=1 << 20, backupCount=1)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
