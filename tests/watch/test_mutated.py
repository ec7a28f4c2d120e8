"""Sessions changed at random in values, lines and bytes, which come in pieces: events in order, or a refusal."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from pathlib import Path

import pytest

from tests.adversarial.test_imports import mutated
from tests.formats import samples
from tests.watch import recordings
from tests.watch.growth import LATER, Growth
from tui_agent.core.fold import fold
from tui_agent.formats.importers.transcript import TranscriptError
from tui_agent.store.lines import encode

OF_THE_FORMATS = ("claude_code", "openhands", "openai_messages_lines")


def sources(folder: Path) -> dict[str, bytes]:
    folder.mkdir()
    rows = [
        {"table": table, "id": key, "messageID": owner, "sessionID": "ses_1", **data}
        for table, key, owner, _, data in recordings.opencode()
    ]
    return {
        **{name: samples.lines(make()).encode() for name, make in recordings.LINES.items()},
        **{name: samples.write(folder, name).read_bytes() for name in OF_THE_FORMATS},
        "atif": json.dumps(recordings.atif()).encode(),
        "opencode": samples.lines([{"table": "session", "sessionID": "ses_1"}, *rows]).encode(),
    }


@pytest.mark.parametrize(
    ("seed", "count"), [(1, 60), (2, 60), pytest.param(3, 10_000, marks=pytest.mark.slow)]
)
def test_nothing_that_grows_breaks_a_watcher(seed: int, count: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    known = sources(tmp_path / "sources")
    path = tmp_path / "session"
    for _ in range(count):
        data = known[chance.choice(sorted(known))]
        for _ in range(chance.randrange(1, 4)):
            data = mutated(data, chance) or b"{"
        path.write_bytes(b"")
        growth = Growth(path, chance.choice(["combined", "hpd", "forge"]))
        with suppress(TranscriptError):
            while data:
                size = chance.randrange(1, max(2, len(data) // 2))
                growth.add(data[:size])
                data = data[size:]
            growth.look(LATER)
        told = growth.watched.events
        assert [event.seq for event in told] == list(range(1, len(told) + 1))
        for event in told:
            encode(event)
        fold(told)
