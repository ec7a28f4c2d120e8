"""The values inside of events. The words that they are made of are in `core.names`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, JsonValue, PlainSerializer

from tui_agent.core.names import FailureKind, FaultKind, Level
from tui_agent.core.tool_facts import ToolFacts, told
from tui_agent.quantities import counted


class Value(BaseModel):
    """An event, or an immutable part of one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def with_values(self, fields: dict[str, Any]) -> Self:
        """The same with other values of these fields, which nobody checks."""
        copy = object.__new__(type(self))
        # What `model_copy` does, at a fraction of its cost: this is done once for every event there is.
        _set(copy, "__dict__", self.__dict__ | fields)
        _set(copy, "__pydantic_fields_set__", self.__pydantic_fields_set__)
        _set(copy, "__pydantic_extra__", None)
        _set(copy, "__pydantic_private__", None)
        return copy


_set = object.__setattr__


FactsOfOthers = Annotated[ToolFacts | None, PlainSerializer(told)]
"""The facts of a tool that is none of this program's own."""


class CallProblem(Value):
    """Why a call cannot be executed: `invalid_tool_call` or `unknown_tool`, and what the model reads about it.

    `input` holds the arguments as far as they could be read as a JSON object.
    """

    kind: FailureKind
    message: str
    input: dict[str, JsonValue] = {}
    rule: str = ""
    """Id of the rule of form that it breaks, if there is one."""


class ToolCall(Value):
    """One call as the model sent it: `arguments` is the raw JSON text, kept exactly."""

    id: str
    name: str
    arguments: str = "{}"
    key: str = ""
    """Identity of the call, computed from the exact arguments when the reply was parsed."""
    effect: Literal["", "read", "write", "command", "network", "dialogue", "task"] = ""
    """The tool's effect; empty if it is not known (a recording of another agent)."""
    facts: FactsOfOthers = None
    """The facts of a tool that is none of this program's own: the fields of `core.tool_facts.ToolFacts` that it states.
    None: its name says them, or nothing does."""
    problem: CallProblem | None = None


class Carried(Value):
    """Fields that a provider wants back with this reply in later requests, exactly as they came. No other
    provider gets them.
    """

    provider: str
    """As litellm names it."""
    message: dict[str, JsonValue] = {}
    """Fields of the assistant message: `thinking_blocks`, `reasoning_items`, `reasoning_details`,
    `provider_specific_fields`."""
    signatures: tuple[str, ...] = ()
    """One for each call, in order; empty if a call has none."""
    calls: tuple[dict[str, JsonValue], ...] = ()
    """Fields of the provider's own in the calls, one for each call, in order."""
    reasoning: bool = False
    """The reply's reasoning goes back as plain text."""
    reasoning_name: str = ""
    """The field in which it came; empty: `reasoning_content`."""


class Suggestion(Value):
    """Lessons of earlier runs about a failure like this one: its repair, and how often that worked."""

    id: str
    """Of the repair in the playbook."""
    level: Literal["workspace", "user"]
    """Whose runs: of this workspace, or all of the user's."""
    form: Literal["instead", "first", "words"]
    """The repair is another call, it comes before the same call again, or it is what the operator wrote."""
    repair: str
    """A command's family (`bin/test`, `pip install`), a path, or those words."""
    example: str = ""
    """The newest call that worked; of a workspace's own runs alone."""
    worked: int = 0
    tried: int = 0
    base: float = 0.0
    """Share of such failures that the next step recovered without it."""

    @property
    def in_words(self) -> str:
        """The text of it that the model reads."""
        if self.form == "words":
            return f"What the operator wrote for such a failure: {self.repair}"
        how = "instead" if self.form == "instead" else "first, then the same call again"
        whose = "in this workspace" if self.level == "workspace" else "in other workspaces too"
        example = f", for example `{self.example}`" if self.example and self.example != self.repair else ""
        return (
            f"In earlier runs {whose}, what worked after such a failure was `{self.repair}` {how} "
            f"({self.worked} of {self.tried} times){example}."
        )


class Failure(Value):
    """One failure, as the detectors see it. `message` is exact; signatures are computed from it when compared."""

    kind: FailureKind
    message: str
    tool: str = ""
    input: dict[str, JsonValue] = {}
    iteration: int = 0
    transient: bool = False
    """Infrastructure, not the model's doing: counted by the per-tool breaker, not by the attempts."""
    unknown_effect: bool = False
    """The call may have had an effect before it failed (a command that timed out): verify before repeating."""
    rule: str = ""
    """Id of the rule of form that the call breaks, if there is one."""
    hint: str = ""
    """Help with an error of this kind in this workspace; joins the note."""
    known: Suggestion | None = None
    """The playbook's words; join the note."""


class Contradiction(Value):
    """The content of a workspace's file straight after a call, against the call's result."""

    path: str
    shown: str
    """A line that the call reported to have written, or showed as the file's; no such line is in the file."""
    wrote: bool = False
    """The call reported it as written."""
    line: int = 0
    """From 1; 0: not known."""
    found: str = ""
    """Of a write: what stands at `line` instead. Of what was only shown nothing is told: it may be private."""


class KeptCall(Value):
    """A call that has failed in an earlier run, as often as `count` says."""

    key: str
    tool: str
    input: dict[str, JsonValue] = {}
    count: int
    message: str = ""
    signature: str = ""
    hint: str = ""


class KeptBreaker(Value):
    """A tool that failed too often in an earlier run. `span`: steps for which it was left out."""

    tool: str
    failures: int = 0
    span: int = 0


class Kept(Value):
    """Counters of the last run in this workspace, which has not changed since; the newest call first."""

    calls: tuple[KeptCall, ...] = ()
    breakers: tuple[KeptBreaker, ...] = ()


class Image(Value):
    """A picture that goes with a message of the operator's: the place of its copy, and its kind; never its
    bytes.
    """

    name: str
    """The path as the operator named it."""
    file: str
    """Name of the copy in the session's folder of images."""
    sha256: str
    media: str
    """`image/png`, …"""
    width: int
    height: int
    size: int
    """Bytes."""

    @property
    def in_words(self) -> str:
        """`image 640×480 png, 83 kB`."""
        size = (
            f"{self.size / 1e6:.1f} MB" if self.size >= 999_500 else f"{max(1, round(self.size / 1000))} kB"
        )
        return f"image {self.width}×{self.height} {self.media.partition('/')[2]}, {size}"


def with_images_named(text: str, images: Iterable[Image]) -> str:
    """The text, and a line for each image behind it."""
    return "\n".join([text, *(f"[{image.in_words}] {image.name}" for image in images)])


class Fault(Value):
    """A failed model call. `advice` says what the operator can do; `retry_after` is in seconds."""

    kind: FaultKind
    message: str
    advice: str = ""
    status: int | None = None
    retry_after: float | None = None
    resets_at: float | None = None
    """When the limit that was reached resets, in seconds since 1970; None: not said."""
    asked: str = ""
    """The model that was asked, and the address of its server if one is configured."""
    window: int | None = None
    """Tokens of the model's window, if an overflow names it."""
    prompt_tokens: int | None = None
    """Tokens of the prompt by the provider's count, if an overflow names them."""
    generation: str | None = None
    """The model's own text ("": not told), if the server says that it could not read the model's call."""


class VerdictRecord(Value):
    """One detector's judgement: its level, its name, its reason in words, and the id of the rule that made it."""

    level: Level
    detector: str
    reason: str = ""
    rule: str = ""


Standing = Literal["shown", "stale", "failed", "missing", "stray"]
"""How a claim of an answer stands by what was seen; a stray is no claim."""


class Receipt(Value):
    """What shows one claim of an answer: the command or the write, how it ended, and in which step."""

    kind: Literal["tests", "build", "lint", "command", "file", "figure", "stray"]
    """A stray is no claim but a file that the run has made and left."""
    claim: str = ""
    """The answer's words, or the file's name."""
    command: str = ""
    """The command that shows it, or the file that was written; "": no result shows it."""
    exit_code: int | None = None
    """None: there is none, or it is another program's."""
    failed: bool = False
    said: str = ""
    """The line of the result that says it."""
    step: int | None = None
    """0: in an earlier run of the session."""
    changed_since: int = 0
    """Changes of files after it."""

    @property
    def standing(self) -> Standing:
        """How the claim stands by what was seen."""
        if self.kind == "stray":
            return "stray"
        if not (self.command or self.said):
            return "missing"
        return "failed" if self.failed else "stale" if self.changed_since else "shown"

    @property
    def in_words(self) -> str:
        """The receipt in a line, without a sign."""
        if self.standing == "missing":
            said = f"“{self.claim}”" if self.kind in {"tests", "build", "lint"} else self.claim
            return f"{said}: not shown"
        if self.kind == "figure":
            return f"{self.claim}: {self.said}"
        when = f"step {self.step}" if self.step else "in an earlier run"
        if self.kind in {"file", "stray"}:
            return f"{self.claim}: {when}"
        said = self.said or (f"exit code {self.exit_code}" if self.exit_code is not None else "it ran")
        since = (
            f"{counted(self.changed_since, 'change')} since"
            if self.changed_since
            else "nothing changed since"
        )
        return f"{self.command}: {said}, {when}, {since}"


class Reach(Value):
    """Something that a call reaches beyond the files of its folder, in words for whoever is asked."""

    kind: Literal["danger", "unread", "deletes", "replaces", "network", "outside"]
    """The gravest first."""
    text: str
    """The names of what it reaches; of a danger and of an unread part, all that is said."""


class HeldFile(Value):
    """A file that a command left and a program outside would run: out of the way until the operator has answered."""

    path: str
    why: str
    """Which program runs or obeys it, and by what."""
    number: int = 0
    """Of the line."""
    line: str = ""
    """The first one of the file that is new."""
    text: str = ""
    """The whole of it."""


class ParentPoint(Value):
    """The point at which a forked session left its parent: the parent's id and the last event's `seq` it
    shares.
    """

    session_id: str
    seq: int


class AgentChoice(Value):
    """A value that an option of another agent can have."""

    value: str
    name: str
    about: str = ""


class AgentOption(Value):
    """An option of another agent: its mode, its model, or one of its own."""

    id: str
    name: str
    kind: str = ""
    """`mode`, `model`, or what else the agent calls it."""
    value: str = ""
    choices: tuple[AgentChoice, ...] = ()

    def choice(self, wanted: str) -> AgentChoice | None:
        """The choice of this value or name."""
        word = wanted.strip().casefold()
        by_value = (one for one in self.choices if one.value == wanted.strip())
        by_name = (one for one in self.choices if word in {one.value.casefold(), one.name.casefold()})
        return next(by_value, None) or next(by_name, None)

    @property
    def named(self) -> str:
        """The name of the value that it has."""
        return next((one.name for one in self.choices if one.value == self.value), self.value)


class AgentCommand(Value):
    """A slash command of another agent, which takes it as a prompt."""

    name: str
    about: str = ""
    hint: str = ""
    """What may stand behind its name."""
