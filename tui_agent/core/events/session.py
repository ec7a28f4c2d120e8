"""Events of the session as a whole: its start, its settings, what is kept of the workspace, and rewinds."""

from __future__ import annotations

from typing import Literal

from tui_agent.core.events.base import Event
from tui_agent.core.names import Decision, Mode, OnEscalation
from tui_agent.core.values import AgentCommand, AgentOption, ParentPoint


class SessionStarted(Event):
    """First line of every journal."""

    type: Literal["session_started"] = "session_started"
    session_id: str
    workspace: str
    app_version: str = ""
    title: str = ""
    parent: ParentPoint | None = None
    source: str = ""
    """The origin of an imported session: the format's name; empty for our own."""


class SessionResumed(Event):
    """A saved session was opened to go on; `dropped_bytes` counts a torn last line."""

    type: Literal["session_resumed"] = "session_resumed"
    app_version: str = ""
    dropped_bytes: int = 0
    operator_present: bool | None = None
    """True: somebody can answer from now on; None: as before."""
    on_escalation: OnEscalation | None = None
    """The way on if nobody can; None: as before."""
    workspace: str = ""
    """Set if the session was not recorded here: it works there from now on, and the approvals and settings
    before hold for nothing that follows. Empty: all is as before.
    """


class AgentOpened(Event):
    """Another agent is ready for this session's prompts, in a session of its own."""

    type: Literal["agent_opened"] = "agent_opened"
    agent: str
    """As the operator names it, or its command."""
    session: str
    """Its own name of the session."""
    version: str = ""
    """Its name and version, as it gives them."""
    model: str = ""
    """The model that it begins with, if it says so."""

    @property
    def in_words(self) -> str:
        """One sentence, without its full stop."""
        about = ", ".join(filter(None, (self.version, self.model)))
        called = f" ({about})" if about else ""
        return f"the agent {self.agent}{called} takes the steps; it runs its own calls, in no sandbox of ours"


class AgentOffered(Event):
    """What another agent offers the operator from now on."""

    type: Literal["agent_offered"] = "agent_offered"
    options: tuple[AgentOption, ...] = ()
    commands: tuple[AgentCommand, ...] = ()

    def option(self, wanted: str) -> AgentOption | None:
        """The option of this id, kind or name."""
        word = wanted.strip().casefold()
        for told in ("id", "kind", "name"):
            found = next((one for one in self.options if getattr(one, told).casefold() == word), None)
            if found is not None:
                return found
        return None


class AgentOptionChosen(Event):
    """The operator chose a value of another agent's option, which holds when the agent is started again, too."""

    type: Literal["agent_option_chosen"] = "agent_option_chosen"
    option: str
    """Its id."""
    value: str
    name: str = ""
    """Of the value, as the agent says it."""

    @property
    def in_words(self) -> str:
        return f"the agent's {self.option} = {self.name or self.value}"


class TitleChanged(Event):
    """The session got a name."""

    type: Literal["title_changed"] = "title_changed"
    title: str


class Notice(Event):
    """Something the operator should know that no other event says."""

    type: Literal["notice"] = "notice"
    severity: Literal["info", "warning", "error"] = "info"
    text: str
    origin: Literal[
        "",
        "import",
        "judgement",
        "cost",
        "parameters",
        "server",
        "budget",
        "form",
        "checkpoint",
        "sandbox",
        "operator",
    ] = ""
    """Who says it: the importer of a foreign transcript; a policy that judged a run which went on elsewhere; the
    limit on the cost; parameters that a model does not take; what was learnt of a server; the form of a reply; a
    checkpoint that could not be made; the sandbox that took back what a command wrote; the operator (only in older
    journals: what a command of his own printed)."""
    about: str = ""
    """The key of the budget that it warns of; the model that writes its calls as text from now on."""
    rule: str = ""


class ModeChanged(Event):
    """The operator chose AUTO, STEP or PAUSED."""

    type: Literal["mode_changed"] = "mode_changed"
    mode: Mode


class SettingChanged(Event):
    """A setting changed in mid-session. `policy` and `model` take effect with the next run and call; `check` and `goal`
    are the command that proves the goal and the goal in words, "" for none.
    """

    type: Literal["setting_changed"] = "setting_changed"
    setting: Literal["policy", "model", "approve", "check", "goal"]
    value: str

    @property
    def in_words(self) -> str:
        return f"{self.setting} = {self.value}"


class RulesChanged(Event):
    """The operator made permission rules for this session, or took such rules back."""

    type: Literal["rules_changed"] = "rules_changed"
    decision: Decision = Decision.ALLOW
    """The decision on the calls that the rules cover."""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def in_words(self) -> str:
        """`allowed for this session: bash(make); taken back: bash(ls *)`."""
        parts = ((f"{self.decision.done} for this session", self.added), ("taken back", self.removed))
        return "; ".join(f"{what}: {', '.join(rules)}" for what, rules in parts if rules)


class CheckpointSaved(Event):
    """The workspace was kept outside the user's git history. `ref` names it in the shadow store."""

    type: Literal["checkpoint_saved"] = "checkpoint_saved"
    ref: str
    iteration: int = 0
    files: tuple[str, ...] = ()
    before: str = ""
    """The step that it precedes or follows, for the list that rewind shows."""


class Rewound(Event):
    """Conversation, files or both went back to an earlier point; `undo_ref` brings the files back again."""

    type: Literal["rewound"] = "rewound"
    scope: Literal["conversation", "files", "both"]
    to_seq: int
    """The last event that the conversation still holds; a place between iterations."""
    undoes: int = 0
    """`seq` of the rewind that this one takes back; 0: it takes none back."""
    ref: str = ""
    undo_ref: str = ""
    files: tuple[str, ...] = ()

    @property
    def in_words(self) -> str:
        """The parts that went back, and the point that they went back to."""
        if self.undoes:
            return f"took back the rewind of event {self.undoes}"
        what = "conversation and files" if self.scope == "both" else self.scope
        return f"{what} went back to event {self.to_seq}"
