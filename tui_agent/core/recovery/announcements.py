"""Replies of text alone that only announce what comes next, or say nothing: no answers (`form.announced`).

The last paragraph decides. A summary, a question, an offer and what waits for somebody's word announce nothing.
"""

from __future__ import annotations

import re

from tui_agent.core.recovery.questions import puts_question
from tui_agent.terminal_text import clipped

_LONGEST = 4_000
"""Characters of a reply's end that are looked at."""
_LONGEST_QUOTE = 160

_FENCE = re.compile(r"^[ \t]*```.*?(?:^[ \t]*```[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_PARAGRAPHS = re.compile(r"\n[ \t]*\n")
_SENTENCE = re.compile(r"(?<=[.!;…])\s+|\n+")
_MARKS = " \t\r\n*_#>`"
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+•|]|\(?\w{1,3}[.)])[ \t]")

_ACTS = (
    "add|adjust|analy[sz]e|apply|attempt|build|change|check|clean|clone|combine|compare|compile|complete|compute"
    "|configure|confirm|continue|convert|copy|correct|count|craft|create|debug|decode|define|delete|design|determine|dig|download"
    "|edit|ensure|examine|execute|explore|extend|extract|fetch|figure|find|finish|fix|generate|get|grep|identify"
    "|implement|import|improve|inspect|install|integrate|investigate|iterate|list|load|locate|look|make|measure|merge"
    "|modify|move|navigate|open|optimi[sz]e|parse|patch|perform|prepare|print|query|read|rebuild|reconstruct|record"
    "|redo|refactor|remove|rename|replace|reproduce|rerun|re-run|research|restart|restore|retry|review|revise|rewrite|run"
    "|save|scan|search|see|set|show|simplify|solve|split|start|step|study|submit|switch|test|trace|train|try|understand"
    "|uninstall|update|upgrade|use|validate|verify|view|walk|work|wrap|write"
)
_ANNOUNCES = re.compile(
    rf"""
    (?:(?:(?:ok(?:ay)?|alright|great|good|perfect|excellent|sure|right|so|and|then|now|next|first(?:ly)?|finally|also
          |instead|after\ that|for\ (?:now|this|that)|with\ that|from\ here|to\ (?:do\ (?:this|that|so)|begin|start))
        [,.!:]?\ ){{0,3}}|[^\n,.;:!?]{{1,60}},\ )
    (?:let\ me|let's|let\ us|i(?:'ll|\ will|\ shall|'m\ going\ to|\ am\ going\ to|\ (?:now\ )?need\ to|'m\ about\ to)
        |we(?:'ll|\ will|\ need\ to)|(?:my|the)\ next\ step\ is\ to)
    \ (?:(?:now|next|first|also|then|quickly|start\ by|begin\ by|try\ to|proceed\ to|go\ ahead\ and|need\ to|just
        |directly|carefully|actually)\ ){{0,3}}
    (?:{_ACTS})(?:ing)?\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""How a sentence begins that announces an act of one's own."""
_ANNOUNCES_HAN = re.compile(
    r"(?:好的?[，,])?(?:(?:接下来|下一步|现在|首先|然后)[，,]?)?(?:让我|我(?:将|会|来|要|先|现在)|继续|开始)"
    r"(?!.*(?:[你您吗呢]|如果|完成|已经|完毕|之后))"
)
"""The same in Chinese, where it waits for nobody."""
_WAITS = re.compile(
    r"\b(?:you|your|yours|if|once|when(?:ever)?|unless|until|after\ (?:that|this)\ is\ (?:done|merged)|later|tomorrow"
    r"|for\ (?:review|approval|confirmation)|in\ the\ future)\b|\bnot\b|n't\b",
    re.IGNORECASE,
)
"""Words by which an act waits for somebody, or is not going to be done."""
_ASKS_FOR_PLAN = re.compile(
    r"\b(?:plan|outline|propose|proposal|suggest\w*|approach|strategy|next steps?|(?:what|how) (?:will|would|are) you"
    r"|(?:do not|don't)\s+(?:\w+\s+){0,2}(?:start|begin|chang\w+|do|run|writ\w+|edit\w*|implement\w*)|wait|stop)\b",
    re.IGNORECASE,
)
"""Words of a task that wants to hear what comes next."""
_SHORT_TASK = 400
"""Characters of a task in which such a word says what is wanted; a longer one uses them for much else."""
_SAYS_SOMETHING = re.compile(r"[^\W_]|[^\x00-\x7f…–—·•]")


def announcement(text: str, task: str) -> str | None:
    """Tell the model why its reply of text alone is no answer to the task; None if it may be one."""
    if not _SAYS_SOMETHING.search(text):
        return "Your reply says nothing. Make the next call; if the work is done, say what was done."
    planned = len(task) <= _SHORT_TASK and _ASKS_FOR_PLAN.search(task)
    words = "" if planned else announced(text)
    if not words:
        return None
    return (
        f"Your reply only announces what comes next (“{words}”), and no call follows: nothing has happened. Make that "
        "call now; if the work is done, say what was done."
    )


def announced(text: str) -> str:
    """Find the last words of a reply that announce an act and no more; "" if there are none."""
    end = text[-_LONGEST:].rstrip()
    words = _FENCE.sub("\n\n```\n\n", end).rstrip()
    paragraph = _PARAGRAPHS.split(words)[-1].strip()
    if paragraph.endswith("```") or puts_question(text):
        return ""
    sentences = [one for one in _SENTENCE.split(paragraph) if one.strip(_MARKS)]
    last = sentences[-1] if sentences else ""
    plain = last.strip(_MARKS)
    opens = plain.endswith((":", "："))
    begins = _ANNOUNCES.match(plain.replace("’", "'")) and not _WAITS.search(plain)
    if (opens and not _LIST_ITEM.match(last)) or begins or _ANNOUNCES_HAN.match(plain):
        return clipped(" ".join(plain.split()), _LONGEST_QUOTE)
    return ""
