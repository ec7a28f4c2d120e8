"""One run of a recording, judged."""

from __future__ import annotations

from pathlib import Path

from tui_agent.core.recovery.policy import RecoveryPolicy
from tui_agent.formats.importers.load import Imported, choose_run, judge, load_transcripts


def load_transcript(
    path: Path, policy: str | RecoveryPolicy | None = None, run: int | None = None
) -> Imported:
    return judge(choose_run(load_transcripts(path), run), policy)
