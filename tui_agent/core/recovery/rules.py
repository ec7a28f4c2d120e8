"""The ids of the recovery rules. Every verdict, refusal, note paragraph and outcome carries the id of its rule.

What each rule does, why, and with which numbers stands in docs/RECOVERY.md under the id as a heading.
"""

from __future__ import annotations

from enum import StrEnum


class Rule(StrEnum):
    """`subject.rule`: the subject is a detector, or the place in the loop at which the rule acts."""

    # What counts as a failure
    FAILURE_NO_MATCH = "failure.no_match"
    FAILURE_FINDINGS = "failure.findings"
    FAILURE_ERROR_PREFIX = "failure.error_prefix"
    FAILURE_UNFINISHED = "failure.unfinished"
    FAILURE_SIBLING = "failure.sibling"
    FAILURE_BATCH = "failure.batch"
    FAILURE_NO_WORK = "failure.no_work"

    # Error ring
    RING_GUIDE = "ring.guide"
    RING_ASK = "ring.ask"
    RING_PIVOT = "ring.pivot"
    RING_STOP = "ring.stop"

    # Attempts of one call
    ATTEMPTS_GUIDE = "attempts.guide"
    ATTEMPTS_PROGRESS = "attempts.progress"
    ATTEMPTS_ESCALATE = "attempts.escalate"
    ATTEMPTS_BLOCK = "attempts.block"
    ATTEMPTS_DENIED = "attempts.denied"

    # The same failure after a change of the workspace
    TRIALS_GUIDE = "trials.guide"
    TRIALS_ASK = "trials.ask"
    TRIALS_PIVOT = "trials.pivot"

    # Failing iterations in a row
    STREAK_GUIDE = "streak.guide"
    STREAK_ASK = "streak.ask"
    STREAK_DEGRADE = "streak.degrade"
    STREAK_STOP = "streak.stop"

    # Cognition
    COGNITION_PIVOT = "cognition.pivot"
    COGNITION_DEGRADE = "cognition.degrade"
    COGNITION_UNCERTAIN = "cognition.uncertain"
    COGNITION_CONCLUDE = "cognition.conclude"

    # Replies that break the form
    FORM_GUIDE = "form.guide"
    FORM_ASK = "form.ask"
    FORM_PIVOT = "form.pivot"
    FORM_DEGRADE = "form.degrade"
    FORM_CUT = "form.cut"
    FORM_TEXT_CALL = "form.text_call"
    FORM_LOST_CALL = "form.lost_call"
    FORM_NO_ANSWER = "form.no_answer"
    FORM_ANNOUNCED = "form.announced"
    FORM_TEXT_PROTOCOL = "form.text_protocol"
    FORM_ECHO = "form.echo"
    FORM_REPETITION = "form.repetition"

    # Replies of text alone
    REPLY_REJECTED = "reply.rejected"

    # Stuck patterns
    STUCK_GUIDE = "stuck.guide"
    STUCK_WAITS = "stuck.waits"
    STUCK_WANTED = "stuck.wanted"
    STUCK_PARAPHRASES = "stuck.paraphrases"
    STUCK_WITHHOLD = "stuck.withhold"
    STUCK_ASK = "stuck.ask"
    STUCK_PIVOT = "stuck.pivot"
    STUCK_STOP = "stuck.stop"

    # Circuit breaker of a tool
    BREAKER_OPEN = "breaker.open"
    BREAKER_PROBE = "breaker.probe"
    BREAKER_LAST_TOOL = "breaker.last_tool"
    BREAKER_BY_HAND = "breaker.by_hand"

    # Silent failures
    IMPLICIT_ERROR = "implicit.error"
    IMPLICIT_EXIT_CODE = "implicit.exit_code"
    IMPLICIT_NO_TESTS = "implicit.no_tests"
    IMPLICIT_NO_CHANGE = "implicit.no_change"
    IMPLICIT_CUT = "implicit.cut"
    IMPLICIT_RETURNS = "implicit.returns"
    IMPLICIT_LOST_WRITE = "implicit.lost_write"
    IMPLICIT_STALE = "implicit.stale"
    IMPLICIT_CLAIM = "implicit.claim"
    IMPLICIT_NOTHING = "implicit.nothing"
    IMPLICIT_ELSEWHERE = "implicit.elsewhere"

    # Failed model calls
    MODEL_RETRY = "model.retry"
    MODEL_WAIT = "model.wait"
    MODEL_FALLBACK = "model.fallback"
    MODEL_SHRINK = "model.shrink"
    MODEL_TEXT_CALLS = "model.text_calls"
    MODEL_NEXT_ITERATION = "model.next_iteration"
    MODEL_ASK = "model.ask"
    MODEL_DEGRADE = "model.degrade"
    MODEL_STOP = "model.stop"

    # Coherent messages and the window
    COHERENCE_ORPHAN_RESULT = "coherence.orphan_result"
    COHERENCE_DUPLICATE_RESULT = "coherence.duplicate_result"
    COHERENCE_MISSING_RESULT = "coherence.missing_result"
    COHERENCE_EMPTY_ASSISTANT = "coherence.empty_assistant"
    WINDOW_CUT = "window.cut"
    WINDOW_SUMMARY = "window.summary"
    WINDOW_SUMMARY_FAILED = "window.summary_failed"
    WINDOW_TOO_SMALL = "window.too_small"

    # Paragraphs of the note
    NOTE_ERROR = "note.error"
    NOTE_ATTEMPTS = "note.attempts"
    NOTE_HINT = "note.hint"
    NOTE_PLAYBOOK = "note.playbook"
    NOTE_UNKNOWN_EFFECT = "note.unknown_effect"
    NOTE_REPEATED = "note.repeated"
    NOTE_BREAKER = "note.breaker"
    NOTE_PIVOT = "note.pivot"
    NOTE_ADVISOR = "note.advisor"
    NOTE_CONCLUDE = "note.conclude"
    NOTE_FAULT = "note.fault"
    NOTE_OPERATOR = "note.operator"
    NOTE_CUT = "note.cut"
    NOTE_HOOK = "note.hook"

    # The operator
    OPERATOR_RETRY = "operator.retry"
    OPERATOR_WAIT = "operator.wait"
    OPERATOR_EDIT = "operator.edit"
    OPERATOR_SKIP = "operator.skip"
    OPERATOR_ANSWER = "operator.answer"
    OPERATOR_FRESH_START = "operator.fresh_start"
    OPERATOR_PARTIAL = "operator.partial"
    OPERATOR_STOP = "operator.stop"
    OPERATOR_DENIED = "operator.denied"
    OPERATOR_COMPACT = "operator.compact"
    OPERATOR_ABSENT = "operator.absent"

    # Bounds of a run, and what ends it from outside
    LIMIT_ITERATIONS = "limit.iterations"
    LIMIT_COST = "limit.cost"
    LIMIT_TOKENS = "limit.tokens"
    LIMIT_TIME = "limit.time"
    LIMIT_WARNING = "limit.warning"
    LIMIT_ASK = "limit.ask"
    RUN_INTERRUPTED = "run.interrupted"
    RUN_ERROR = "run.error"
    PARTIAL_ANSWER = "partial.answer"
    FRESH_START = "fresh.start"
    CLOSING_TURN = "closing.turn"
