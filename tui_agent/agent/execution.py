"""Executing the calls of one reply: check, approve, run, isolate, record.

Every call ends in exactly one result, whatever happens. Calls that only read run at the same time; a call that
may change something waits for all before it and holds back all after it, so their order is the reply's order.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tui_agent import events as e
from tui_agent.agent.approvals import allowed_by, needs_approval, session_rule
from tui_agent.agent.coalesce import ProgressStream
from tui_agent.agent.ending import Ending
from tui_agent.agent.hooks import HookName, HookRunner
from tui_agent.agent.keeper import KeepsNothing, WorkspaceKeeper
from tui_agent.agent.operator import Operator
from tui_agent.agent.recorder import Recorder
from tui_agent.tools.registry import InvalidCall, ParsedCall, ToolRegistry
from tui_agent.tools.tool import Effect, TextMask, Tool, ToolContext, ToolError, ToolOutput
from tui_agent.tools.workspace import Workspace

UNKNOWN_EFFECT = (
    "The call was interrupted before it ended. Whether it had an effect is unknown: "
    "verify before repeating it."
)
NOT_STARTED = "The call was not started: the iteration was interrupted before its turn."
RUN_OVER = "The call was not started: the run ended with an earlier call of the same reply."


@dataclass
class _Issued:
    """One call of the reply on its way: `arguments` are the ones to execute."""

    index: int
    call: e.ToolCall
    tool: Tool
    arguments: dict[str, Any]
    started_at: float = 0.0


class Executor:
    """Runs the calls of a reply and records what became of each."""

    def __init__(
        self,
        recorder: Recorder,
        tools: ToolRegistry,
        operator: Operator,
        workspace: Workspace,
        output_dir: Path,
        hooks: HookRunner | None = None,
        keeper: WorkspaceKeeper | None = None,
        new_mask: Callable[[], TextMask | None] = lambda: None,
    ) -> None:
        self._recorder = recorder
        self._tools = tools
        self._operator = operator
        self._workspace = workspace
        self._output_dir = output_dir
        self._hooks = hooks
        self._keeper = keeper or KeepsNothing()
        self._new_mask = new_mask

    async def run(self, calls: Sequence[e.ToolCall]) -> Ending | None:
        """Execute `calls` in the reply's order; an ending where `finish` or the operator ended the run."""
        reads: list[_Issued] = []
        let_through: list[tuple[str, dict[str, Any]]] = []
        for index, call in enumerate(calls):
            parsed = self._check(index, call, let_through)
            if parsed is None:
                continue
            issued = _Issued(index, call, parsed.tool, parsed.arguments)
            let_through.append((call.name, parsed.arguments))
            if parsed.tool.effect is Effect.READ:
                reads.append(issued)
                continue
            await self._together(reads)
            reads = []
            ending = await self._alone(issued)
            if ending is not None:
                self.cancel_open(RUN_OVER)
                return ending
        await self._together(reads)
        return None

    def cancel_open(self, why: str = "") -> None:
        """A result for every call of the open iteration that has none: it was cancelled."""
        history = self._recorder.state.history
        if history.reply is None:
            return
        answered = {result.call_id for result in history.results}
        for index, call in enumerate(history.reply.calls):
            if call.id in answered:
                continue
            shown = self._recorder.state.conversation.call(call.id)
            started = shown is not None and shown.started is not None
            content = why or (UNKNOWN_EFFECT if started else NOT_STARTED)
            self._recorder.record(
                e.ToolCancelled(
                    call_id=call.id,
                    tool=call.name,
                    input=shown.input if shown else {},
                    index=index,
                    content=content,
                    reason=why or "interrupted",
                )
            )

    def _check(
        self, index: int, call: e.ToolCall, let_through: Sequence[tuple[str, dict[str, Any]]]
    ) -> ParsedCall | None:
        """The parsed call, or None when it is wrong or recovery withholds it (recorded as such)."""
        try:
            parsed = self._tools.parse(call)
        except InvalidCall as wrong:
            failure = self._failure(wrong.kind, call.name, wrong.arguments, wrong.message)
            self._recorder.record(
                e.ToolFailed(
                    call_id=call.id,
                    tool=call.name,
                    input=wrong.arguments,
                    index=index,
                    content=_as_error(wrong.message),
                    failure=failure,
                )
            )
            return None
        permit = self._recorder.state.recovery.permit(call.name, parsed.arguments, let_through)
        if permit.allowed:
            return parsed
        content = permit.reason
        if permit.earlier_result:
            content = f"{permit.reason}\n\nThe earlier result:\n{permit.earlier_result}"
        self._refuse(index, call, parsed.arguments, permit.refusal, permit.reason, content)
        return None

    async def _together(self, reads: Sequence[_Issued]) -> None:
        if len(reads) == 1:
            await self._execute(reads[0])
        elif reads:
            async with asyncio.TaskGroup() as group:
                for issued in reads:
                    group.create_task(self._execute(issued))

    async def _alone(self, issued: _Issued) -> Ending | None:
        if issued.tool.effect is Effect.DIALOGUE:
            return await self._dialogue(issued)
        if await self._approved(issued):
            await self._execute(issued)
        return None

    async def _dialogue(self, issued: _Issued) -> Ending | None:
        self._start(issued)
        if issued.call.name == "finish":
            answer = str(issued.arguments["answer"])
            self._succeed(issued, ToolOutput("The run ends with this answer."))
            return Ending(e.Outcome.ANSWERED, answer=answer)
        question = str(issued.arguments["question"])
        raised = self._recorder.record(
            e.EscalationRaised(
                id=f"ask-{issued.call.id}",
                question=question,
                source="ask_operator",
                tool=issued.call.name,
                options=tuple(str(option) for option in issued.arguments.get("options", ())),
            )
        )
        reply = await self._operator.answer(raised)
        self._recorder.record(
            e.EscalationAnswered(id=raised.id, choice=reply.choice, text=reply.text, by=reply.by)
        )
        match reply.choice:
            case "partial":
                return Ending(
                    e.Outcome.PARTIAL,
                    f"The agent asked, and nobody answered: {question}",
                    detector="ask_operator",
                )
            case "stop":
                return Ending(
                    e.Outcome.ESCALATED,
                    f"The agent asked, and nobody answered: {question}",
                    detector="ask_operator",
                )
            case "continue" | "skip":
                said = "Nobody can answer now. Decide by yourself, say which assumption you made, and go on."
            case _:
                said = reply.text or "The operator gave no answer in words; go on as you think best."
        self._succeed(issued, ToolOutput(said))
        return None

    async def _approved(self, issued: _Issued) -> bool:
        """Whether the call may run; a denial is recorded with its reason."""
        state = self._recorder.state
        if not needs_approval(issued.tool.effect, state.session.approve or e.Approval.ASK):
            return True
        if allowed_by(state.session.rules, issued.tool, issued.arguments):
            return True
        rule, covers = session_rule(issued.tool, issued.arguments)
        asked = self._recorder.record(
            e.ApprovalAsked(
                id=f"approve-{issued.call.id}",
                call_id=issued.call.id,
                tool=issued.call.name,
                input=issued.arguments,
                preview=await asyncio.to_thread(self._preview, issued),
                covers=covers,
                rule=rule,
            )
        )
        reply = await self._operator.approve(asked)
        self._recorder.record(
            e.ApprovalAnswered(
                id=asked.id, decision=reply.decision, reason=reply.reason, input=reply.input, by=reply.by
            )
        )
        if reply.decision == "deny":
            who = "The operator" if reply.by == "operator" else "The approval policy"
            reason = reply.reason or "no reason was given"
            content = f"{who} denied this call: {reason}. It was not executed; do not repeat it unchanged."
            self._refuse(issued.index, issued.call, issued.arguments, "denied", reason, content)
            return False
        if reply.input is not None and reply.input != issued.arguments:
            return self._take_edit(issued, reply.input)
        return True

    def _take_edit(self, issued: _Issued, arguments: dict[str, Any]) -> bool:
        edited = issued.call.model_copy(update={"arguments": json.dumps(arguments)})
        try:
            issued.arguments = self._tools.parse(edited).arguments
        except InvalidCall as wrong:
            reason = f"the operator's edited arguments do not fit: {wrong.message}"
            self._refuse(issued.index, issued.call, arguments, "denied", reason, reason)
            return False
        return True

    def _preview(self, issued: _Issued) -> str:
        try:
            return issued.tool.preview(issued.arguments, self._workspace)
        except (ToolError, OSError) as error:
            return f"(no preview: {error})"

    async def _execute(self, issued: _Issued) -> None:
        if not await self._hook_allows(issued):
            return
        if issued.tool.effect is not Effect.READ:
            await self._keeper.before_effect()
            await self._recorder.barrier()
        self._start(issued)
        progress = ProgressStream(self._recorder, issued.call.id)
        context = ToolContext(self._workspace, self._output_dir, issued.call.id, progress.add, self._new_mask)
        try:
            output = await issued.tool.run(issued.arguments, context)
        except ToolError as error:
            await self._fail(issued, error)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - one broken tool must not end the run or its siblings
            await self._fail(
                issued, ToolError(f"the tool {issued.call.name} broke: {type(error).__name__}: {error}")
            )
        else:
            if self._reports_error_in_text(output.content):
                await self._fail(issued, ToolError(output.content, output_file=output.output_file))
            else:
                self._succeed(issued, output)
                await self._run_hooks("PostToolUse", issued, tool_response=output.content)
        finally:
            progress.drop()

    def _reports_error_in_text(self, content: str) -> bool:
        """HPD-Agent: any tool's output that begins with `Error:` is a failure; ours raise when they fail."""
        policy = self._recorder.state.recovery.policy
        return policy.error_prefix == "every_tool" and content.startswith("Error:")

    async def _hook_allows(self, issued: _Issued) -> bool:
        reports = await self._run_hooks("PreToolUse", issued)
        blocked = next((report for report in reports if report.status == "blocked"), None)
        if blocked is not None:
            content = f"A PreToolUse hook denied this call: {blocked.error}"
            self._refuse(issued.index, issued.call, issued.arguments, "denied", blocked.error, content)
        return blocked is None

    async def _run_hooks(self, name: HookName, issued: _Issued, **facts: Any) -> list[e.HookReported]:
        if self._hooks is None:
            return []
        reports = await self._hooks.run(name, issued.call.name, issued.call.id, issued.arguments, **facts)
        for report in reports:
            self._recorder.record(report)
        return reports

    def _start(self, issued: _Issued) -> None:
        issued.started_at = time.monotonic()
        self._recorder.record(
            e.ToolStarted(
                call_id=issued.call.id, tool=issued.call.name, input=issued.arguments, index=issued.index
            )
        )

    def _succeed(self, issued: _Issued, output: ToolOutput) -> None:
        self._recorder.record(
            e.ToolSucceeded(
                call_id=issued.call.id,
                tool=issued.call.name,
                input=issued.arguments,
                index=issued.index,
                content=output.content,
                duration=time.monotonic() - issued.started_at,
                changed=output.changed,
                diff=output.diff,
                output_file=output.output_file,
            )
        )

    async def _fail(self, issued: _Issued, error: ToolError) -> None:
        failure = self._failure(
            e.FailureKind.TOOL_EXECUTION,
            issued.call.name,
            issued.arguments,
            error.message,
            transient=error.transient,
            unknown_effect=error.unknown_effect,
        )
        self._recorder.record(
            e.ToolFailed(
                call_id=issued.call.id,
                tool=issued.call.name,
                input=issued.arguments,
                index=issued.index,
                content=_as_error(error.message),
                duration=time.monotonic() - issued.started_at,
                failure=failure,
                output_file=error.output_file,
            )
        )
        await self._run_hooks("PostToolUseFailure", issued, error=error.message)

    def _failure(
        self, kind: e.FailureKind, tool: str, arguments: dict[str, Any], message: str, **facts: bool
    ) -> e.Failure:
        iteration = self._recorder.state.run.iteration
        return e.Failure(kind=kind, tool=tool, input=arguments, message=message, iteration=iteration, **facts)

    def _refuse(
        self,
        index: int,
        call: e.ToolCall,
        arguments: dict[str, Any],
        refusal: str,
        reason: str,
        content: str,
    ) -> None:
        self._recorder.record(
            e.ToolRefused.model_validate(
                {
                    "call_id": call.id,
                    "tool": call.name,
                    "input": arguments,
                    "index": index,
                    "content": content,
                    "refusal": refusal,
                    "reason": reason,
                }
            )
        )


def _as_error(message: str) -> str:
    return message if message.startswith("Error:") else f"Error: {message}"
