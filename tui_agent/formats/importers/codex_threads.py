"""Sub-agents of Codex: each has a rollout of its own, which names the thread that started it in its first line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from tui_agent import untrusted_files
from tui_agent.formats.importers.values import parsed, text_at

_ROLLOUT = re.compile(r"rollout-.{19}-([0-9a-f-]{36})\.jsonl\Z")
_ID = re.compile(r"[0-9a-f-]{36}\Z")
_HEAD = 256 * 1024
"""Bytes among which the first line ends."""


def is_started(path: Path) -> bool:
    """True if another rollout beside this one is of the thread that started it, and stands for both."""
    starter = _starter_of(path)
    return bool(starter) and any(untrusted_files.found(path.parent, f"rollout-*-{starter}.jsonl"))


def _starter_of(path: Path) -> str:
    """The thread that started a rollout's; empty for one that a person began, or that begins with a copied history."""
    with suppress(OSError):
        if _ROLLOUT.match(path.name):
            return _starter(path, min(path.stat().st_size, _HEAD))
    return ""


@lru_cache(maxsize=4_096)
def _starter(path: Path, size: int) -> str:
    """As long as its first line may still be written, the `size` is another one."""
    with suppress(OSError):
        meta = parsed(untrusted_files.head(path, size).split(b"\n", 1)[0])
        if not text_at(meta, "payload", "forked_from_id"):
            spawned = text_at(meta, "payload", "source", "subagent", "thread_spawn", "parent_thread_id")
            named = spawned or text_at(meta, "payload", "parent_thread_id")
            return named if _ID.match(named) else ""
    return ""


def thread_of(path: Path) -> str:
    """The id of a rollout's thread, by its name."""
    named = _ROLLOUT.match(path.name)
    return named[1] if named else ""


def started_from(path: Path) -> Iterator[Path]:
    """Rollouts beside one that its thread started, and those that these started, in the order of their times."""
    threads = {thread_of(path)} - {""}
    for other in sorted(untrusted_files.found(path.parent, "rollout-*.jsonl")) if threads else ():
        if other.name > path.name and _starter_of(other) in threads:
            threads.add(thread_of(other))
            yield other
