"""The meaning of an operator's answer to an escalation for the calls it is about.

`operator.retry` and `operator.edit` let a call run once; after `operator.skip` and `operator.answer` it stays blocked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_agent.core.events import EscalationAnswered

_ANOTHER_TRY = re.compile(
    r"(?:please\W+)?(?:just\W+)?(?:re-?try(?:\W+once)?|(?:try|run|do)(?:\W+(?:it|this|that))?\W+(?:again|once\W+more|one\W+more\W+time)"
    r"|once\W+more|again|one\W+more\W+(?:try|time))(?:\W+please)?\W*",
    re.IGNORECASE,
)


def choice_of(answer: EscalationAnswered) -> str:
    """The operator's choice. A free text that asks for another try and nothing else is *retry once*."""
    if answer.choice == "answer" and _ANOTHER_TRY.fullmatch(answer.text.strip()):
        return "retry"
    return answer.choice
