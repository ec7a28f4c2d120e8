"""The permission rules that a session judges by: of the configuration, kept for the workspace, made in the session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tui_agent.config.settings import Settings
from tui_agent.config.user_file import UserFile
from tui_agent.core import events
from tui_agent.core.names import Decision
from tui_agent.permissions.findings import Judgement
from tui_agent.permissions.rules import PermissionRule, parse_rule
from tui_agent.runtime.approvals import Approvals
from tui_agent.store.audit import rule_uses
from tui_agent.store.kept_rules import KeptRules
from tui_agent.store.recorder import SessionRecorder
from tui_agent.tools.registry import ToolRegistry, subject_key
from tui_agent.tools.shell import Bash


class PermissionRules:
    """`approvals` judge by them."""

    def __init__(
        self, settings: Settings, recorder: SessionRecorder, tools: ToolRegistry, folder: Path
    ) -> None:
        self._recorder = recorder
        self._tools = tools
        self._folder = folder
        self._user_file = settings.user_file
        self._workspace = Path(recorder.state.session.workspace)
        self.kept = KeptRules(settings.state_dir, self._workspace)
        self.approvals = Approvals(
            self._workspace,
            settings.permission_rules(),
            self.kept.rules,
            self.kept.add,
            self._keep_everywhere,
            settings.permissions.reads,
        )

    def in_force(self) -> list[PermissionRule]:
        """Every rule, each with its source."""
        return self.approvals.rules(self._recorder.state)

    def change(
        self, added: Sequence[str] = (), removed: Sequence[str] = (), decision: Decision = Decision.ALLOW
    ) -> None:
        """Make rules for this session, or take such rules back. Raises `ValueError` for what is no rule."""
        for text in added:
            parse_rule(decision, text, "")
        changed = events.RulesChanged(decision=decision, added=tuple(added), removed=tuple(removed))
        self._recorder.record(changed)

    def use(self, settings: Settings) -> None:
        """Judge by these settings' rules from now on."""
        self.approvals.configured = tuple(settings.permission_rules())

    def judge(self, line: str) -> Judgement:
        """Say what would become of a command, or of `TOOL SUBJECT` for a tool with a path or an address. Looks into the
        workspace.
        """
        name, _, subject = line.partition(" ")
        tool = self._tools.get(name)
        if tool is None:
            tool, subject = Bash(), line
        return self.approvals.judge(self._recorder.state, tool, {subject_key(tool): subject.strip()})

    def uses(self) -> Counter[str]:
        """Count how often each rule let a call of this session run, or refused one. Reads the journal."""
        return rule_uses(self._folder, self.in_force())

    def holds_secret(self, text: str) -> bool:
        """Tell if a text holds a secret of this environment, or what looks like one."""
        return self._recorder.holds_secret(text)

    def _keep_everywhere(self, texts: Sequence[str]) -> None:
        """Allow calls by these rules in every workspace. Raises `ConfigError`, `ValueError`."""
        file = UserFile(self._user_file, {"workspace": self._workspace})
        self.use(file.add_rules(Decision.ALLOW, texts))
