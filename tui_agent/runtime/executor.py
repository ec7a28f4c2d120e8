"""Executing the calls of one reply: approve, run, isolate, record.

What may run, and in which groups, is decided in `core.decision`. Calls of a group run at the same time; every call ends
in exactly one result, whatever is raised on its way. Only a journal that cannot be written ends the run.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tui_agent.config.errors import ConfigError
from tui_agent.config.sections import HookEvent
from tui_agent.core import events
from tui_agent.core.decision.tool_calls import as_error, facts_of, wrong_call
from tui_agent.core.framed import cleaned, framed, named
from tui_agent.core.names import Approval, Decision
from tui_agent.core.recovery.attempts import AttemptLedger
from tui_agent.core.recovery.rules import Rule
from tui_agent.core.tool_facts import Effect, Use
from tui_agent.permissions.findings import Judgement
from tui_agent.permissions.judge import looks_at_files
from tui_agent.permissions.offers import rules_in_words
from tui_agent.runtime import held_files, instructions
from tui_agent.runtime.approvals import Approvals, Rules
from tui_agent.runtime.checkpointer import Checkpointer
from tui_agent.runtime.coalesce import ProgressStream
from tui_agent.runtime.hooks import CONTEXT_LIMIT, HookRunner
from tui_agent.runtime.instructions import Instructions
from tui_agent.runtime.operator import Operator
from tui_agent.runtime.read_back import comparable, contradiction
from tui_agent.runtime.recorder import MaskedSecretError, Recorder, RecordingFailed
from tui_agent.sandbox.mechanisms import Sandbox
from tui_agent.sandbox.taken_back import TakenBack
from tui_agent.tools.errors import ToolError, in_words
from tui_agent.tools.failure_hints import hint_for
from tui_agent.tools.registry import InvalidCall, ParsedCall, ToolRegistry
from tui_agent.tools.tool import Tool, ToolContext, ToolOutput, uses_of
from tui_agent.tools.workspace import Workspace, os_failure

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 8
"""Calls of a group that run at the same time."""

Group = Sequence[events.ToolCall]


@dataclass
class _Issued:
    """One call of the reply on its way: `arguments` are the ones to execute."""

    index: int
    call: events.ToolCall
    tool: Tool
    arguments: dict[str, Any]
    started_at: float = 0.0
    allowed_by: str = ""
    reads_only: bool = False
    """It runs unasked because it does nothing but read."""
    ended: bool = False
    """Its result is recorded."""

    @property
    def facts(self) -> dict[str, Any]:
        return facts_of(self.index, self.call, self.arguments)


Known = Callable[[str, Mapping[str, Any], str, float, bool], events.Suggestion | None]
"""Tool, arguments and error of a failed call, the time, and whether other workspaces count, to what the playbook says
of it."""

MOST_TOLD = 2
"""Times that the same suggestion is made while what it was for goes on failing."""


class Executor:
    """Runs the calls of a reply and records what became of each."""

    def __init__(
        self,
        recorder: Recorder,
        tools: ToolRegistry,
        operator: Operator,
        workspace: Workspace,
        output_dir: Path,
        approvals: Approvals,
        hooks: HookRunner,
        sandbox: Callable[[], Awaitable[Sandbox]],
        checkpointer: Checkpointer,
        hints: Sequence[tuple[str, str]],
        known: Known,
    ) -> None:
        """`hints` are (pattern, hint) pairs of the configuration; `known` says what the playbook has on a failed call
        (blocking)."""
        self._recorder = recorder
        self._tools = tools
        self._operator = operator
        self._workspace = workspace
        self._output_dir = output_dir
        self._approvals = approvals
        self._sandbox = sandbox
        self._hooks = hooks
        self._checkpointer = checkpointer
        self._hints = tuple(hints)
        self._known = known
        self.exact: Mapping[str, ParsedCall] = {}
        """The newest reply's calls by their ids, as the model sent them: in the recorded ones secrets are masked."""

    async def run(self, groups: Sequence[Group], *, approved: bool = False) -> None:
        """Execute the groups in their order; `approved`: the operator wrote the calls and is not asked."""
        reply = self._recorder.state.recovery.reply
        places = {call.id: place for place, call in enumerate(reply.calls)} if reply is not None else {}
        slots = asyncio.Semaphore(MOST_AT_ONCE)

        async def one(call: events.ToolCall) -> None:
            async with slots:
                await self._call(places.get(call.id, 0), call, approved=approved)

        for group in groups:
            if len(group) == 1:
                await one(group[0])
            else:
                try:
                    async with asyncio.TaskGroup() as tasks:
                        for call in group:
                            tasks.create_task(one(call))
                except BaseExceptionGroup as several:
                    raise _cause(several) from several

    async def _call(self, index: int, call: events.ToolCall, *, approved: bool) -> None:
        parsed = self.exact.get(call.id)
        if parsed is None:
            try:
                parsed = self._tools.parse(call)
            except InvalidCall as wrong:
                # The operator's edited call does not fit.
                failed = wrong_call(self._recorder.state, index, call, wrong.problem)
                await self.report_failure(self._recorder.record(failed))
                return
        issued = _Issued(index, call, parsed.tool, parsed.arguments)
        try:
            if await self._approved(issued, by_operator=approved):
                await self._execute(issued)
        except RecordingFailed:
            raise
        except Exception as error:
            logger.debug("the call %s broke", call.id, exc_info=True)
            if issued.ended:
                self._broke_behind(call.name, error)
            else:
                await self._fail(issued, _failure(call.name, error))

    async def _approved(self, issued: _Issued, *, by_operator: bool) -> bool:
        """True if the call may run; a denial is recorded with its reason. A call that a rule denies runs for
        nobody.
        """
        judgement = await self._judged(issued)
        if judgement.decision is Decision.DENY:
            return self._denied_by_rule(issued, judgement)
        if by_operator or judgement.decision is Decision.ALLOW:
            issued.allowed_by = "the operator, who wrote the call" if by_operator else judgement.by
            issued.reads_only = judgement.reads_only
            return True
        async with self._approvals.asking:
            # What was answered meanwhile, to a lane beside this one, may let this call run as well.
            judgement = await self._judged(issued)
            if judgement.decision is Decision.ALLOW:
                issued.allowed_by, issued.reads_only = judgement.by, judgement.reads_only
                return True
            return await self._allowed(issued, judgement)

    async def _allowed(self, issued: _Issued, judgement: Judgement) -> bool:
        """The operator's decision on a call; a denial is recorded with its reason."""
        rules, others = await asyncio.to_thread(self._offered, issued, judgement)
        asked = self._recorder.record(
            events.ApprovalAsked(
                id=f"approve-{issued.call.id}",
                call_id=issued.call.id,
                tool=issued.call.name,
                input=issued.arguments,
                preview=await asyncio.to_thread(self._preview, issued),
                covers=rules_in_words(rules),
                rules=rules,
                others=others,
                why=judgement.speaking.words(),
                place=self._approvals.place(issued.tool),
                reaches=await asyncio.to_thread(self._approvals.reaches, issued.tool, issued.arguments),
            )
        )
        reply = await self._operator.approve(asked)
        await self._keep(reply.decision, reply.rules or asked.rules)
        self._recorder.record(
            events.ApprovalAnswered(
                id=asked.id,
                decision=reply.decision,
                reason=reply.reason,
                input=reply.input,
                by=reply.by,
                rules=reply.rules,
            )
        )
        if reply.decision == "deny":
            who = "The operator" if reply.by == "operator" else "The approval policy"
            reason = reply.reason or "no reason was given"
            content = (
                f"{who} denied this call: {cleaned(reason)}. It was not executed; do not repeat it unchanged."
            )
            self._refuse(issued, reason, content)
            return False
        if reply.decision != "once":
            self._approvals.agree(issued.tool)
        issued.allowed_by = f"the operator ({reply.decision})"
        if reply.input is not None and reply.input != issued.arguments:
            return await self._take_edit(issued, reply.input)
        # The mode, or a rule, may have changed while the card stood.
        judgement = await self._judged(issued)
        return judgement.decision is not Decision.DENY or self._denied_by_rule(issued, judgement)

    def _offered(self, issued: _Issued, judgement: Judgement) -> tuple[tuple[str, ...], Rules]:
        """The rules that would let the call run from now on, and other sets of them."""
        state, tool, arguments = self._recorder.state, issued.tool, issued.arguments
        rules = self._approvals.suggestions(state, tool, arguments, judgement)
        return rules, self._approvals.others(state, tool, arguments, rules)

    async def _keep(self, decision: str, rules: tuple[str, ...]) -> None:
        """Keep rules beyond this session. If that cannot be, they hold for the session, and a notice says so."""
        keep = {"always": self._approvals.keep, "everywhere": self._approvals.keep_everywhere}.get(decision)
        if keep is not None:
            try:
                await asyncio.to_thread(keep, rules)
            except Exception as error:  # noqa: BLE001 - the call was allowed, whatever becomes of the rule
                says = error.message if isinstance(error, ConfigError) else in_words(error)
                text = f"The rule could not be kept and holds for this session only: {says}"
                self._recorder.record(events.Notice(severity="warning", text=text))

    async def _judged(self, issued: _Issued) -> Judgement:
        call = self._recorder.state, issued.tool, issued.arguments
        try:
            uses = uses_of(issued.tool)
            if uses is not None and Use.RUNS in uses.values():
                self._approvals.sandbox = await self._prepared_sandbox()
            if looks_at_files(uses):
                return await asyncio.to_thread(self._approvals.judge, *call)
            return self._approvals.judge(*call)
        except ToolError:
            raise
        except Exception as error:
            logger.debug("the call %s could not be judged", issued.call.id, exc_info=True)
            raise ToolError(
                f"The permission rules could not judge this call, so it was not executed ({in_words(error)}). "
                "Write it in a simpler way."
            ) from error

    def _denied_by_rule(self, issued: _Issued, judgement: Judgement) -> bool:
        found = judgement.speaking
        reason, then = found.words(), ""
        if found.rule is not None:
            reason = f"a permission rule forbids it: {reason}"
            then = " No approval lifts this; find another way, or say in your answer what could not be done."
        content = f"{named(found.subject, 400)!r} was not executed: {named(reason, 1_000)}.{then}"
        self._refuse(issued, reason, content)
        return False

    async def _take_edit(self, issued: _Issued, arguments: dict[str, Any]) -> bool:
        edited = issued.call.model_copy(update={"arguments": json.dumps(arguments)})
        issued.arguments = arguments
        try:
            issued.arguments = self._tools.parse(edited).arguments
        except InvalidCall as wrong:
            reason = f"the operator's edited arguments do not fit: {wrong.problem.message}"
            self._refuse(issued, reason, reason)
            return False
        key = self._recorder.state.recovery.key(issued.call.name, issued.arguments)
        issued.call = issued.call.model_copy(update={"key": key})
        judgement = await self._judged(issued)
        return judgement.decision is not Decision.DENY or self._denied_by_rule(issued, judgement)

    def _preview(self, issued: _Issued) -> str:
        try:
            return issued.tool.preview(issued.arguments, self._workspace)
        except Exception as error:  # noqa: BLE001 - the arguments themselves are shown beside it
            return f"(no preview: {in_words(error)})"

    async def _execute(self, issued: _Issued) -> None:
        if not await self._hook_allows(issued):
            return
        if issued.tool.effect not in {Effect.READ, Effect.TASK} and not issued.reads_only:
            if issued.tool.effect is not Effect.NETWORK:
                await self._checkpointer.before_effect()
            await self._recorder.barrier()
        self._start(issued)
        progress = ProgressStream(self._recorder, issued.call.id)
        sandbox = await self._sandbox_of(issued)
        context = ToolContext(
            self._workspace,
            self._output_dir,
            issued.call.id,
            progress.add,
            self._recorder.new_mask,
            self._recorder.state.known_files,
            sandbox,
            partial(self._approvals.may_read, self._recorder.state),
            partial(self._hold, issued, sandbox) if self._operator.present else None,
        )
        found = await self._instructions(issued)
        try:
            # Only here: what is recorded and shown keeps the placeholder.
            arguments = self._with_secrets(issued)
            output = await issued.tool.run(arguments, context)
        except MaskedSecretError as error:
            await self._fail(issued, ToolError(str(error)))
        except ToolError as error:
            await self._fail(issued, error)
        except asyncio.CancelledError:
            progress.flush()
            raise
        except RecordingFailed:
            raise
        except Exception as error:  # noqa: BLE001 - one broken tool must not end the run or its siblings
            await self._fail(issued, _failure(issued.call.name, error))
        else:
            if self._reports_error_in_text(output):
                await self._fail(issued, ToolError(output.content, output_file=output.output_file))
            else:
                against = await self._read_back(issued.call.name, arguments, output)
                self._succeed(issued, self._with_instructions(output, found), against)
                await self._run_hooks(
                    "PostToolUse",
                    issued.call.name,
                    issued.call.id,
                    issued.arguments,
                    tool_response=output.content,
                )
        finally:
            progress.drop()

    async def _hold(self, issued: _Issued, sandbox: Sandbox, taken: Sequence[TakenBack]) -> str:
        """Ask what becomes of what a command left for programs outside to run; the time of that is not the call's."""
        began = time.monotonic()
        call = issued.call.id, issued.call.name, issued.arguments
        try:
            return await held_files.become_of(
                taken, call, sandbox, self._recorder, self._operator, self._approvals
            )
        finally:
            issued.started_at += time.monotonic() - began

    async def _read_back(
        self, tool: str, arguments: dict[str, Any], output: ToolOutput
    ) -> events.Contradiction | None:
        looks = self._recorder.state.recovery.policy.implicit
        if not (looks and comparable(tool, arguments, output)):
            return None
        try:
            return await asyncio.to_thread(contradiction, self._workspace.root, tool, arguments, output)
        except Exception:
            logger.debug("a result could not be compared with the workspace", exc_info=True)
            return None

    async def _prepared_sandbox(self) -> Sandbox:
        """The sandbox that commands run in. Raises `ToolError` if it could not be prepared; the next call
        tries it anew.
        """
        try:
            return await self._sandbox()
        except Exception as error:
            logger.debug("the sandbox could not be prepared", exc_info=True)
            raise ToolError(
                f"The sandbox could not be prepared, so nothing was executed: {in_words(error)}",
                transient=True,
            ) from error

    async def _sandbox_of(self, issued: _Issued) -> Sandbox:
        """The sandbox of this call's commands. A call that only reads, and any call in plan mode, can change
        nothing there.
        """
        sandbox = await self._prepared_sandbox()
        return sandbox.only_reading() if issued.reads_only or self._plans else sandbox

    @property
    def _plans(self) -> bool:
        """True if nothing may be changed now."""
        return self._recorder.state.session.approve is Approval.PLAN

    async def _instructions(self, issued: _Issued) -> tuple[Instructions, ...]:
        if not instructions.concern(issued.tool, issued.arguments):
            return ()
        try:
            path = str(issued.arguments["path"])
            return await asyncio.to_thread(instructions.for_path, self._workspace, path)
        except Exception:
            logger.debug("instructions could not be looked for", exc_info=True)
            return ()

    def _with_instructions(self, output: ToolOutput, found: tuple[Instructions, ...]) -> ToolOutput:
        given = instructions.still_to_give(found, self._recorder.state) if found else ()
        if not given:
            return output
        files = {one.path: one.digest for one in given}
        content = instructions.joined(output.content, given)
        return replace(output, content=content, files={**files, **output.files})

    def _with_secrets(self, issued: _Issued) -> dict[str, Any]:
        """The arguments with masked secrets put back, which never go to the network."""
        arguments = self._recorder.restore(issued.arguments)
        if issued.tool.effect is Effect.NETWORK and arguments != issued.arguments:
            raise ToolError(
                "The arguments hold a masked secret, which is not sent to the network. Leave it out."
            )
        return arguments

    def _reports_error_in_text(self, output: ToolOutput) -> bool:
        """`failure.error_prefix` (HPD-Agent): any tool's own output that begins so is a failure; ours raise instead."""
        policy = self._recorder.state.recovery.policy
        text = output.content if output.unframed is None else output.unframed
        return policy.error_prefix == "every_tool" and text.startswith("Error:")

    async def _hook_allows(self, issued: _Issued) -> bool:
        reports = await self._run_hooks("PreToolUse", issued.call.name, issued.call.id, issued.arguments)
        blocked = next((report for report in reports if report.status == "blocked"), None)
        if blocked is not None:
            content = f"A PreToolUse hook denied this call:{framed(blocked.error, CONTEXT_LIMIT)}"
            self._refuse(issued, blocked.error, content)
        return blocked is None

    async def _run_hooks(
        self, event: HookEvent, tool: str, call_id: str, arguments: dict[str, Any], **facts: Any
    ) -> list[events.HookReported]:
        confined = None
        if self._plans and self._hooks.are_there(event, tool):
            confined = (await self._prepared_sandbox()).only_reading()
        reports = await self._hooks.run(event, tool, call_id, arguments, confined, **facts)
        for report in reports:
            self._recorder.record(report)
        return reports

    async def report_failure(self, failed: events.ToolFailed) -> None:
        """Let the `PostToolUseFailure` hooks hear of a failed call, with the number of its attempt."""
        attempt = self._recorder.state.recovery.of(AttemptLedger).count(failed.key) + 1
        error = failed.failure.message
        try:
            await self._run_hooks(
                "PostToolUseFailure", failed.tool, failed.call_id, failed.input, error=error, attempt=attempt
            )
        except RecordingFailed:
            raise
        except Exception as fault:
            logger.debug("the hooks of a failure broke", exc_info=True)
            self._broke_behind(failed.tool, fault)

    def _broke_behind(self, tool: str, error: Exception) -> None:
        text = f"Something broke behind the call of {tool}: {in_words(_cause(error))}"
        self._recorder.record(events.Notice(severity="warning", text=text))

    def _start(self, issued: _Issued) -> None:
        issued.started_at = time.monotonic()
        self._recorder.record(
            events.ToolStarted(
                **issued.facts,
                allowed_by=issued.allowed_by,
            )
        )

    def _succeed(
        self, issued: _Issued, output: ToolOutput, against: events.Contradiction | None = None
    ) -> None:
        self._recorder.record(
            events.ToolSucceeded(
                **issued.facts,
                content=output.content,
                duration=time.monotonic() - issued.started_at,
                changed=output.changed,
                diff=output.diff,
                output_file=output.output_file,
                files=dict(output.files),
                before=dict(output.before),
                exit_code=output.exit_code,
                contradiction=against,
            )
        )
        issued.ended = True

    async def _hint(self, issued: _Issued, message: str) -> str:
        call = issued.call.name, issued.arguments, message
        try:
            return await asyncio.to_thread(hint_for, *call, self._workspace, self._hints)
        except Exception:
            logger.debug("no hint could be made", exc_info=True)
            return ""

    async def _from_playbook(self, issued: _Issued, message: str) -> events.Suggestion | None:
        """Lessons of earlier runs about this failure, without those that this run was told `MOST_TOLD` times
        already.
        """
        state = self._recorder.state
        if not state.recovery.policy.playbook:
            return None
        try:
            call = issued.call.name, issued.arguments, message, state.at
            known = await asyncio.to_thread(self._known, *call, state.recovery.policy.playbook_elsewhere)
        except Exception:
            logger.debug("the playbook could not be read", exc_info=True)
            return None
        told = sum(
            attempt.known == known for one in state.metrics.incidents.open.values() for attempt in one.course
        )
        return None if told >= MOST_TOLD else known

    async def _fail(self, issued: _Issued, error: ToolError) -> None:
        failure = events.Failure(
            kind=events.FailureKind.TOOL_EXECUTION,
            tool=issued.call.name,
            input=issued.arguments,
            message=error.message,
            iteration=self._recorder.state.run.iteration,
            transient=error.transient,
            unknown_effect=error.unknown_effect,
            hint=await self._hint(issued, error.message),
            known=await self._from_playbook(issued, error.message),
        )
        failed = self._recorder.record(
            events.ToolFailed(
                **issued.facts,
                content=as_error(error.message),
                duration=time.monotonic() - issued.started_at,
                failure=failure,
                output_file=error.output_file,
                exit_code=error.exit_code,
            )
        )
        issued.ended = True
        await self.report_failure(failed)

    def _refuse(self, issued: _Issued, reason: str, content: str) -> None:
        self._recorder.record(
            events.ToolRefused(
                **issued.facts,
                content=content,
                refusal="denied",
                reason=reason,
                rule=Rule.OPERATOR_DENIED,
            )
        )
        issued.ended = True


def _cause(error: BaseException) -> BaseException:
    """The error that counts: of a group the part that ends the run, else its first one."""
    while isinstance(error, BaseExceptionGroup):
        ending = error.subgroup(lambda part: isinstance(part, RecordingFailed))
        error = (ending or error).exceptions[0]
    return error


def _failure(tool: str, error: Exception) -> ToolError:
    """A tool's failure for whatever it raised."""
    cause = _cause(error)
    match cause:
        case ToolError():
            return cause
        case OSError():
            return os_failure(cause, f"carry out {tool}")
        case _:
            return ToolError(f"the tool {tool} broke: {in_words(cause)}")
