"""The acceptance cases of recovery: what they may say, and how they are read.

A case is data in one of the TOML files beside this module, which README.md explains; `load_cases()` reads them all
into frozen values and refuses whatever is not part of the form. Nothing here judges: tests play the steps.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tui_agent.core.events import Contradiction, FaultKind, Level
from tui_agent.core.recovery.policy import PRESETS

FOLDER = Path(__file__).parent

MAIN_ARGUMENT = {
    "read_file": "path",
    "write_file": "path",
    "edit_file": "path",
    "list_dir": "path",
    "glob": "pattern",
    "grep": "pattern",
    "bash": "command",
    "ask_operator": "question",
    "finish": "answer",
}
"""The argument that a call names when it is written in short: `{ read_file = "a" }`."""

WRITERS = frozenset({"write_file", "edit_file"})
"""Tools whose success changes the file that their path names."""


class Form(BaseModel):
    """A part of a case: frozen, and with no field that the form does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Call(Form):
    """One call of a reply and what becomes of it, if it is let through."""

    tool: str
    input: dict[str, Any] = {}
    outcome: Literal[
        "succeeds", "fails", "times_out", "exits", "denied", "cancelled", "malformed", "unknown"
    ] = "succeeds"
    """exits: a command ends with `exit_code`. cancelled: cut off because a sibling failed. malformed: the arguments
    are no JSON. unknown: there is no such tool."""
    text: str = "done"
    """The result, the error, the reason of a denial, or the raw arguments of a malformed call."""
    exit_code: int = 0
    transient: bool = False
    """The tool's infrastructure failed (its server is gone, the disk is full)."""
    changed: tuple[str, ...] = ()
    """Files of the workspace that the call changed."""
    hint: str = ""
    """What the tool says would help with its failure."""
    known: dict[str, Any] | None = None
    """What the playbook says of it (`events.Suggestion`)."""
    held: str | None = None
    """The line that the call's file holds afterwards, whatever its result says."""

    @property
    def contradiction(self) -> Contradiction | None:
        """What the file that `held` is a line of says against the result."""
        if self.held is None:
            return None
        path, wrote = str(self.input.get("path") or self.text.partition(":")[0]), self.tool in WRITERS
        said = str(self.input.get("new", self.input.get("content"))) if wrote else self.text.split(":")[-1]
        return Contradiction(path=path, shown=said, wrote=wrote, line=1, found=self.held if wrote else "")

    @property
    def files(self) -> dict[str, str]:
        """The file that a write touched, whether it changed it or not, and a stand-in for its digest."""
        return {str(self.input["path"]): "0"} if self.tool in WRITERS and "path" in self.input else {}


class Reply(Form):
    """The model answers: text, calls, or both. One iteration."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    written: Call | None = None
    """The call that its text is."""
    cut: bool = False
    """The reply was cut by the length limit."""
    reasoning: str = ""
    finish: str = ""
    """Why it ended, if not as its calls and `cut` say."""
    cost: float | None = None
    """USD."""
    tokens: int | None = None
    """Of the prompt."""
    hook: str = ""
    """What a `PostToolUseFailure` hook adds to the note."""


class Fault(Form):
    """The model call fails. Retries of one call are faults in a row within one iteration."""

    kind: FaultKind
    message: str = "scripted"
    retry_after: float | None = None
    """Seconds that the provider asks for."""
    status: int | None = None
    resets_in: float | None = None
    """Seconds until the limit resets, as the provider says."""
    limit: int | None = None
    """Tokens that the error names as the model's limit."""


class Answer(Form):
    """The operator answers the question that is open."""

    choice: Literal["answer", "retry", "wait", "edit", "skip", "fresh_start", "partial", "stop"]
    says: str = ""
    call: Call | None = None
    """The edited call and its outcome (`edit`): the engine runs it itself."""


class Message(Form):
    """The operator says something while the run goes on."""

    text: str


class Task(Form):
    """A new message of the operator begins the next run."""

    text: str


class Breaker(Form):
    """The operator opens or closes the breaker of a tool by hand."""

    tool: str
    opened: bool


class Compact(Form):
    """The operator asks for a summary; it is made before the next model call."""

    instructions: str = ""


class End(Form):
    """The run is ended from outside: a signal or a time limit (interrupted), a fault of the program (error)."""

    outcome: Literal["interrupted", "error"]
    reason: str


class Request(Form):
    """A history as the validator gets it, one message a word: `user`, `assistant 1 2`, `assistant`, `result 1`."""

    messages: tuple[str, ...]


Action = Reply | Fault | Answer | Message | Task | Breaker | Compact | End | Request


class Expect(Form):
    """What must hold after a step. What is not named is not checked; a list names what must be among the values."""

    # The joined verdict, and each detector's
    verdict: Level | None = None
    at_least: Level | None = None
    at_most: Level | None = None
    seen: Level | None = None
    """Some verdict of the run so far is at least this."""
    rule: str | None = None
    """The rule of the strongest verdict."""
    detector: str | None = None
    reason: tuple[str, ...] = ()
    """Parts of the strongest verdict's reason."""
    rules: tuple[str, ...] = ()
    """Rules of any detector's verdict."""

    # Counters
    ring: int | None = Field(None, ge=0, le=5)
    """Filled slots."""
    attempts: int | None = None
    """The highest count of any call."""
    streak: int | None = None
    stall: int | None = None
    confidence: float | None = None
    strategy: Literal["CONTINUE", "PIVOT", "DEGRADE", "CONCLUDE"] | None = None

    # The step's own calls
    refused: Literal["", "denied", "blocked", "withheld", "breaker", "unverified"] | None = None
    """How a call of the step was refused; "": none was."""
    refused_by: str | None = None
    """The rule of that refusal."""
    refusal: tuple[str, ...] = ()
    """Parts of what the model reads in place of the result."""
    not_offered: tuple[str, ...] = ()
    """Tools that the next model call does not offer."""

    # The next note
    note: tuple[str, ...] = ()
    note_without: tuple[str, ...] = ()
    note_rules: tuple[str, ...] = ()
    no_note: bool = False

    # A fault
    action: (
        Literal[
            "retry", "wait", "fallback", "shrink", "next_iteration", "ask", "degrade", "stop", "text_calls"
        ]
        | None
    ) = None
    fault_rule: str | None = None
    waits_by: str | None = None
    """The rule by which the run began to wait for a limit in this step; "": it did not."""
    calls_model: str | None = None
    """The model that the next call goes to; the run's own is `first/model`."""

    # A question
    asks: bool | None = None
    """A question waits for the operator, or none does."""
    asked_by: str | None = None
    """The rule that asks."""

    # The end
    outcome: (
        Literal["", "answered", "partial", "stopped", "escalated", "model_failed", "interrupted", "error"]
        | None
    ) = None
    """"": the run goes on."""
    ended_by: str | None = None
    """The rule that ended the run; "" for an answer."""
    answer: tuple[str, ...] = ()
    """Parts of the answer, or of the partial answer."""
    answer_without: tuple[str, ...] = ()

    # The request
    sent: tuple[str, ...] | None = None
    """Messages that leave, in the words of `Request`."""
    repairs: tuple[str, ...] = ()
    cut_by: str | None = None
    """The rule that cut the window in this step; "": it was not cut."""
    summary_by: str | None = None
    """The rule of the summary of this step, or of its failure, or of the fresh start; "": none was tried."""
    warned_by: str | None = None
    """The rule that told the operator of a budget or of the form in this step; "": none did."""
    reads: tuple[str, ...] = ()
    """Parts of what the model reads in place of the steps before."""

    def rule_ids(self) -> frozenset[str]:
        """Every rule that the expectation names."""
        single = (self.rule, self.refused_by, self.fault_rule, self.asked_by, self.ended_by)
        single = (*single, self.cut_by, self.summary_by, self.warned_by, self.waits_by)
        return frozenset(rule for rule in (*single, *self.rules, *self.note_rules, *self.repairs) if rule)


class Step(Form):
    """One step; `times` plays it so often, and `then` holds after the last time."""

    action: Action
    times: int = Field(1, ge=1)
    then: Expect | None = None


class Case(Form):
    """A sequence of steps under a policy."""

    id: str
    policy: str = "combined"
    operator: Literal["present", "absent"] = "absent"
    on_escalation: Literal["partial", "continue", "stop"] = "partial"
    """What happens where nobody can be asked."""
    settings: dict[str, Any] = {}
    """Parameters of the policy that differ from the preset."""
    without: dict[str, Any] = {}
    """With these parameters the case must fail: the rule is taken away."""
    max_iterations: int = 50
    asks_for_steps: bool = False
    """An operator who is there is asked for more of them."""
    max_cost: float | None = None
    budgets: dict[str, float] = {}
    """Further budgets by the keys of their settings."""
    context_tokens: int | None = None
    summary: str = ""
    """What a model writes that is asked for a summary; empty: nothing."""
    advice: str = ""
    """What another model suggests at a pivot; empty: there is no advisor."""
    tool_calls: Literal["auto", "native", "text"] = "auto"
    """How the model calls tools; `text`: a reply's text is read for a call."""
    tools: tuple[str, ...] = ()
    """The run's tools; empty: those that the case names and the usual ones."""
    fallbacks: tuple[str, ...] = ()
    fallbacks_by_kind: dict[str, tuple[str, ...]] = {}
    on_limit: Literal["wait", "fallback", "stop"] | None = None
    """What happens where a limit of use is reached."""
    wait_at_most: float = 21_600.0
    proves: tuple[str, ...]
    why: str
    source: str = ""
    """Where a case of another project's suite comes from."""
    steps: tuple[Step, ...]
    file: str = ""
    """The file that holds it."""


F = TypeVar("F", bound=Form)


class CaseError(Exception):
    """A case file does not have the form. The message names the file, the case and the step."""


def load_cases(folder: Path = FOLDER) -> tuple[Case, ...]:
    """Every case of every file, in the files' order. Raises `CaseError`."""
    cases: dict[str, Case] = {}
    for path in sorted(folder.glob("*.toml")):
        raw = tomllib.loads(path.read_text("utf-8"))
        if set(raw) - {"defaults", "case"}:
            raise CaseError(f"{path.name}: a file holds [defaults] and [[case]], not {sorted(set(raw))}")
        for table in raw.get("case", []):
            case = _case({**raw.get("defaults", {}), **table}, path.name)
            if case.id in cases:
                raise CaseError(f"{path.name}: the id {case.id!r} is taken")
            cases[case.id] = case
    return tuple(cases.values())


def _case(table: dict[str, Any], file: str) -> Case:
    where = f"{file}, case {table.get('id', '(no id)')}"
    steps = [_step(step, f"{where}, step {number}") for number, step in enumerate(table.get("steps", []), 1)]
    case = _made(Case, {**table, "steps": steps, "file": file}, where)
    if case.policy not in PRESETS:
        raise CaseError(f"{where}: there is no policy {case.policy!r}")
    if not any(step.then for step in case.steps):
        raise CaseError(f"{where}: no step expects anything")
    return case


def _step(table: dict[str, Any], where: str) -> Step:
    fields = {key: value for key, value in table.items() if key not in {"then", "times"}}
    action = _action(fields, where)
    then = _made(Expect, table["then"], where) if "then" in table else None
    return _made(Step, {"action": action, "times": table.get("times", 1), "then": then}, where)


def _action(fields: dict[str, Any], where: str) -> Action:
    match fields:
        case {"fault": kind, **more}:
            return _made(Fault, {"kind": kind, **more}, where)
        case {"operator": choice, **more}:
            if "call" in more:
                more["call"] = _call(more["call"], where)
            return _made(Answer, {"choice": choice, **more}, where)
        case {"message": text, **more}:
            return _made(Message, {"text": text, **more}, where)
        case {"task": text, **more}:
            return _made(Task, {"text": text, **more}, where)
        case {"breaker": tool, **more}:
            return _made(Breaker, {"tool": tool, **more}, where)
        case {"compact": instructions, **more}:
            return _made(Compact, {"instructions": instructions, **more}, where)
        case {"end": outcome, **more}:
            return _made(End, {"outcome": outcome, **more}, where)
        case {"request": messages, **more}:
            return _made(Request, {"messages": messages, **more}, where)
        case {"calls": _} | {"text": _}:
            calls = [_call(call, where) for call in fields.get("calls", [])]
            written = _call(fields["written"], where) if "written" in fields else None
            return _made(Reply, {**fields, "calls": calls, "written": written}, where)
    raise CaseError(f"{where}: {sorted(fields)} is no step")


_OUTCOMES = {"gives": "succeeds", "fails": "fails", "times_out": "times_out", "denied": "denied"}
"""Keys of a call that hold a text, and the outcome that they stand for."""

_FLAGS = frozenset({"cancelled", "malformed", "unknown"})
_FACTS = frozenset({"exits", "long", "transient", "changed", "hint", "known", "held"})


def _call(table: dict[str, Any], where: str) -> Call:
    names = [key for key in table if key not in _OUTCOMES and key not in _FLAGS | _FACTS]
    if len(names) != 1:
        raise CaseError(f"{where}: a call names one tool, not {names}")
    tool, argument = names[0], table[names[0]]
    fields: dict[str, Any] = {"tool": tool}
    for flag in _FLAGS & table.keys():
        fields["outcome"] = flag
    for key, outcome in _OUTCOMES.items():
        if key in table:
            fields |= {"outcome": outcome, "text": table[key]}
    if "exits" in table:
        fields |= {"outcome": "exits", "exit_code": table["exits"], "text": table.get("gives", "")}
    if "malformed" in table:
        fields["text"] = argument
    else:
        fields["input"] = _input(tool, argument, where)
    if "long" in table:
        fields["text"] = "word " * (table["long"] // 5)
    fields |= {fact: table[fact] for fact in ("transient", "hint", "known", "held") if fact in table}
    changes = tool in WRITERS and fields.get("outcome", "succeeds") == "succeeds"
    fields["changed"] = table.get("changed", [fields["input"]["path"]] if changes else [])
    return _made(Call, fields, where)


def _input(tool: str, argument: Any, where: str) -> dict[str, Any]:
    if isinstance(argument, dict):
        return argument
    if tool not in MAIN_ARGUMENT:
        raise CaseError(f"{where}: the arguments of {tool} are written as a table")
    return {MAIN_ARGUMENT[tool]: argument}


def _made(form: type[F], fields: dict[str, Any], where: str) -> F:
    try:
        return form.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise CaseError(f"{where}: {place}: {first['msg']}") from None
