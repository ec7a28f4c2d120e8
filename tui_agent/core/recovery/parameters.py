"""Parameters that several parts of recovery go by, and the types of numbers that parameters are made of.

Those of one detector stand in its own file, in a class that adds them to these. `policy` puts all of them together.
"""

from __future__ import annotations

from collections.abc import Collection
from inspect import get_annotations
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from tui_agent.core.recovery.findings import LARGEST_CODE

Count = Annotated[int, Field(ge=1)]
CountFrom0 = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0)]
FindingCode = Annotated[int, Field(ge=1, le=LARGEST_CODE)]
# The length is a limit of its own: counted in the pattern, it took 90 ms of every start to compile.
ProgramName = Annotated[str, Field(max_length=120, pattern=r"^[\w.+-]+( [\w:.+-]+)?$")]


class Parameters(BaseModel):
    """Those that belong to no detector, and the two switches by which several count."""

    # A class that only hands its fields on needs no validator: only the policy is built.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: str = "combined"
    """The preset it was made from."""

    text_only: Literal["failure", "answer", "failure_once"] = "failure_once"
    """A reply without a call: always a failure (Forge), always the answer, or once a failure after a failing step."""
    persistence: CountFrom0 = 3
    """Texts that give up and are no answer in a run that goes on alone, until the workspace changes."""
    reads_text: bool = True
    """Text that is a call is carried out as one, and text that repeats the engine's own words or itself is
    no answer."""
    search_results: bool = True
    """A search or comparison that finds nothing (exit code 1 without an error text) is a result, not a failure."""
    work_only: bool = True
    """A success that did no work does not count: `finish`, a plan, and a write that changes nothing."""
    findings: bool = True
    """Exit codes by which test runners, linters and compilers say what they found are results, not failures."""
    finding_codes: dict[ProgramName, tuple[FindingCode, ...]] = {}
    """Further programs (`checker`, or `checker lint`) with the exit codes that mean findings."""
    unfinished: bool = True
    """A command that a time limit cut off while its output moved on is progress, not a failure."""
    error_prefix: Literal["every_tool", "mute_tools"] = "mute_tools"
    """When text that starts with `Error:` is a failure: from every tool (HPD), or from tools without a better way."""
    note: Literal["merged", "forge", "gigi", "funnelcanary", "none"] = "merged"
    """The text for the model after a failure, beside the tool results."""

    attempts_key: Literal["canonical", "as_sent"] = "canonical"
    """The identity of calls: canonical input, or the JSON in the order as sent (Gigi)."""
    trials: Literal["off", "count"] = "count"
    """A failure after a change of the workspace: a repeat like any other, or a trial, which is never blocked."""
    form: Literal["off", "count", "ladder"] = "ladder"
    """Replies that break the form: counted as failures like others, or by a ladder of their own; "off": not judged."""

    playbook: bool = True
    """Repairs of failures in earlier runs are counted. The note names one when there is enough evidence."""
    playbook_elsewhere: bool = False
    """When nothing is known of this workspace, the note says what worked in your others."""
    persist: bool = False
    """Failures of a call and of a tool count on in the next run, while the workspace has not changed since the last."""
    fresh_starts: CountFrom0 = 2
    """How often a run may begin anew in place of an end by recovery: another window, what was learned, new counts."""
    closing_turn: bool = True
    """Before recovery ends a run, one more reply and its calls (`combined` alone)."""


def together(kinds: Collection[type[Parameters]]) -> tuple[type[Parameters], ...]:
    """Leave out the classes whose fields another one adds to: they are there by that. Raises `TypeError` if two declare
    a parameter of one name, of which one would hide the other.
    """
    every: tuple[type[Parameters], ...] = (Parameters, *kinds)
    declared: dict[str, type[Parameters]] = {}
    for kind in every:
        for name in get_annotations(kind):
            if (other := declared.setdefault(name, kind)) is not kind:
                raise TypeError(
                    f"{kind.__name__} and {other.__name__} both have a parameter {name}: rename one."
                )
    return tuple(
        one for one in kinds if not any(one is not other and issubclass(other, one) for other in kinds)
    )
