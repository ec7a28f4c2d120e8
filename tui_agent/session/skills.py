"""The skills of a session: looked for anew, and offered to the model from then on."""

from __future__ import annotations

from pathlib import Path

from tui_agent.config.settings import user_config_file
from tui_agent.core import events
from tui_agent.store.recorder import SessionRecorder
from tui_agent.tools.registry import ToolRegistry
from tui_agent.tools.skills import BadSkill, ReadSkill, Skills, find_skills


class SessionSkills:
    """Those of the operator and of the workspace."""

    def __init__(self, recorder: SessionRecorder, tools: ToolRegistry, workspace: Path) -> None:
        self._recorder, self._tools, self._workspace = recorder, tools, workspace
        self._bad: set[BadSkill] = set()

    def find(self) -> Skills:
        """Look for the skills that there are now; say once of each that is no good why it is left out."""
        found = find_skills(self._workspace, user_config_file().parent)
        for bad in found.bad:
            if bad not in self._bad:
                text = f"The skill in {bad.place} is left out: {bad.reason}."
                self._recorder.record(events.Notice(severity="warning", text=text))
        self._bad.update(found.bad)
        self._tools.put("skills", [ReadSkill(found)] if found.skills else [])
        return found
