"""Files that a command left for programs outside to run: out of the way until the operator lets them stand,
or does not.

It was taken back before anybody is asked. So nothing runs it meanwhile, and if no answer comes it stays away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tui_agent.core import events
from tui_agent.core.framed import named
from tui_agent.sandbox.inside import in_words
from tui_agent.sandbox.taken_back import OutOfTheWay, TakenBack

if TYPE_CHECKING:
    from tui_agent.runtime.approvals import Approvals
    from tui_agent.runtime.operator import ApprovalReply, Operator
    from tui_agent.runtime.recorder import Recorder
    from tui_agent.sandbox.mechanisms import Sandbox

MOST_ASKED = 20
"""Files of one question; of more, nobody would read what he allows."""
_MOST_TEXT = 200_000
"""Bytes of all of them."""

Call = tuple[str, str, Mapping[str, Any]]
"""Its id, its tool, its arguments."""


async def become_of(
    taken: Sequence[TakenBack],
    call: Call,
    sandbox: Sandbox,
    recorder: Recorder,
    operator: Operator,
    approvals: Approvals,
) -> str:
    """Ask about files that may stand, put them back if the answer is yes, and give words for the model about
    the rest.
    """
    files = _asked_about(taken)
    left = list(taken)
    try:
        if not files:
            return in_words(left)
        async with approvals.asking:
            reply, id_ = await _answer(files, call, recorder, operator)
            denied = reply.decision == "deny"
            recorder.record(
                events.ApprovalAnswered(
                    id=id_, decision="deny" if denied else "once", reason=reply.reason, by=reply.by
                )
            )
            await recorder.barrier()
        lines = [] if denied else await _let_stand(files, left, sandbox)
        if left:
            lines.append(in_words(left, advises=not denied))
        if denied:
            reason = f" The reason: {named(reply.reason, 1_000)}" if reply.reason else ""
            lines.append(f"{_WHO[reply.by]} was asked and did not keep it; do not write it again.{reason}")
        return "\n".join(lines)
    finally:
        sandbox.report(left)


_WHO = {"operator": "The operator", "policy": "The approval policy"}


async def _answer(
    files: Sequence[tuple[TakenBack, OutOfTheWay]], call: Call, recorder: Recorder, operator: Operator
) -> tuple[ApprovalReply, str]:
    id_, tool, arguments = call
    asked = recorder.record(
        events.ApprovalAsked(
            id=f"keep-{id_}",
            call_id=id_,
            tool=tool,
            input=dict(arguments),
            held=tuple(
                events.HeldFile(
                    path=one.path,
                    why=one.why,
                    number=one.number,
                    line=one.line,
                    text=file.left.content.decode(),
                )
                for one, file in files
            ),
        )
    )
    return await operator.approve(asked), asked.id


async def _let_stand(
    files: Sequence[tuple[TakenBack, OutOfTheWay]], left: list[TakenBack], sandbox: Sandbox
) -> list[str]:
    """Put the files back, and take them out of `left`. In words what stands, and what could not be put there."""
    kept, lines = [], []
    for one, file in files:
        try:
            if sandbox.watch is not None:
                await asyncio.to_thread(sandbox.watch.let_stand, file)
        except OSError as error:
            why = named(error.strerror or str(error))
            lines.append(f"The operator kept {named(one.path)!r}, but it could not be put back: {why}.")
        else:
            kept.append(repr(named(one.path)))
            left[:] = [other for other in left if other.path != one.path]
    if kept:
        stands = f"The operator was asked and kept what programs outside will run: {', '.join(kept)}."
        lines.insert(0, f"{stands} This holds for these files as they are now.")
    return lines


def _asked_about(taken: Sequence[TakenBack]) -> list[tuple[TakenBack, OutOfTheWay]]:
    """The last state that the command left of each file, if all of it can be shown; nothing if it is too
    much.
    """
    newest = {one.path: one for one in taken}
    found = [(one, one.file) for one in newest.values() if one.file is not None]
    size = sum(len(file.left.content) for _, file in found)
    return found if len(found) <= MOST_ASKED and size <= _MOST_TEXT else []
