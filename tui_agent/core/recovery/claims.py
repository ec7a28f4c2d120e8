"""Claims of an answer: that tests pass, or that a file says something. Pure, and bounded in time for any
text.

Only a plain statement counts. Who says in the same answer that something fails, was not run or is only expected has
claimed nothing that could be doubted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Literal

from tui_agent.terminal_text import clipped

_LONGEST = 8_000
"""Characters of an answer that are looked at, from its end and its beginning together."""
_LONGEST_QUOTE = 160

Kind = Literal["tests", "build", "lint"]
"""What is checked: the behaviour, whether it can be built, or how it is written."""

_PASSES = re.compile(
    r"""
      \b(?:all|the|both|every|existing|unit|new|full|whole|relevant|entire|my|our|related|updated|added|its|\d+)\b
          [^.;:!?\n]{0,60}?\b(?:tests?|test\ suites?|test\ cases?|specs?)\b[^.;:!?\n]{0,60}?
          \b(?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|green|successful(?:ly)?)\b
    | \b(?:tests?|specs?|test\ suite)\s+(?:(?:now|all|still|are|have|is)\s+){0,4}
          (?:pass(?:es|ed|ing)?|succeed(?:s|ed)?|green)\b
    | \b[1-9]\d*\s+(?:tests?\s+)?pass(?:ed|ing)\b | \b\d+/\d+\s+(?:tests?\s+)?pass(?:ed|ing)?\b
    | \b(?:ran|run|executed|running)\s[^.;:!?\n]{0,60}?\b(?:tests?|test\ suite)\b[^.;:!?\n]{0,60}?
          \b(?:successfully|cleanly|(?:all|they|it|and)\ pass(?:es|ed)?)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_BUILDS = re.compile(
    r"""
      \b(?:builds?|compilation)\s+(?:\w+\s+){0,3}?(?:pass(?:es|ed)?|succeed(?:s|ed)?|works?|green|clean(?:ly)?
          |successful(?:ly)?)\b
    | \b(?:builds|built|compiles|compiled)\s+(?:\w+\s+){0,3}?(?:successfully|cleanly|fine
          |without\ (?:issues|warnings))\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_LINTS = re.compile(
    r"\b(?:lint(?:er|ers|ing)?|ruff|flake8|pylint|eslint|mypy|pyright|clippy|type[- ]?check(?:s|er|ing)?"
    r"|format(?:ter|ting))\b[^.;:!?\n]{0,40}?\b(?:pass(?:es|ed)?|clean(?:ly)?|succeed(?:s|ed)?|green"
    r"|no (?:issues|warnings))\b",
    re.IGNORECASE,
)
_CLAIMS: Mapping[Kind, re.Pattern[str]] = {"tests": _PASSES, "build": _BUILDS, "lint": _LINTS}
_TESTS_PASS = (
    r"\b(?:tests?|pruebas|テスト)",
    r"(?:bestanden|bestehen|grün|erfolgreich|passent|passés|réussi|succès|pasan|pasaron|pasado|éxito|成功|通過|通り|パス|合格)",
)
_PASSES_ABROAD = re.compile(
    r"{0}[^.;!?。\n]{{0,60}}?{1}|{1}[^.;!?。\n]{{0,60}}?{0}".format(*_TESTS_PASS), re.IGNORECASE
)
"""That tests pass, in German, French, Spanish or Japanese."""
_SPAN = re.compile(r"`([^`\n]*)`")
_DOUBT = re.compile(
    r"""
      \b(?:should|would|could|will|may|might|must|expected?|expects?|hopefully|likely|probably|presumably|assum\w+|if|once|
          until|before|when|unless|seems?|make\ sure|let(?:'s|\ me|\ us)|which|whether|i'll|now\ i|next|
          to\ (?:ensure|verify|check|confirm|see|make|get|achieve|satisfy|let|have|reach|obtain|complete)
          |so\ (?:that|it|they|the)|can\ (?:pass|succeed|be)|try|rerun|re-run|exclud\w+|rather\ than|easiest|simplest
          |subset|option|keep(?:s|ing)?|most(?:ly)?|remaining|rest|earlier|previously)\b
    | \b(?:not|n't|cannot|never|nor|without\ running|no\ way|unable|un(?:verified|tested|run))\b | n't\b
    | \b(?:except|apart\ from|aside\ from|other\ than|but|however|although|unrelated|pre-?existing|flaky|skipped?|
          already\ fail\w*|fail(?:s|ed|ing|ures?)?|errors?|broken)\b
    | \?
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Words that make a sentence no plain statement."""
_HONEST = re.compile(
    r"""
      \b(?:not|n't|cannot|never|unable\ to|could\s+not|couldn't|didn't|did\s+not|have\s+not|haven't|without)\s+
          (?:\w+\s+){0,3}?(?:run|ran|running|execute[d]?|test(?:ed)?|verif(?:y|ied))\b
    | \b(?:still|tests?|one|two|three|four|five|\d+)\s+(?:\w+\s+){0,3}?(?:fail(?:s|ed|ing|ures?)?|errors?|broken)\b
    | \b(?:fail(?:s|ed|ing|ures?))\s+(?:\w+\s+){0,4}?(?:remain|unrelated|pre-?existing|before|already)\b
    | \b(?:unrelated|pre-?existing|known|expected|remaining|only|single|consistently|sometimes|also)\s+(?:\w+\s+){0,2}?
          (?:fail\w*|errors?)\b
    | \b(?:fail(?:s|ed|ures?))\s+(?:\w+\s+){0,2}?(?:due|because|only|since|with|on|in|if|when)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Words that make an answer one that hides nothing."""
_ONE_TEST = re.compile(
    r"\b(?:this|that|the|a|new|my|`[^`]{1,80}`)\s+(?:[\w`.-]+\s+){0,2}test\s+(?!suite|run|file|cases)",
    re.IGNORECASE,
)
"""A claim about one test says nothing of the run that it was a part of."""
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_NO_FAILURES = re.compile(
    r"\b(?:no|0|zero|without(?:\ any)?)\s+(?:\w+\s+){0,2}?(?:fail\w*|errors?|regressions?)\b", re.IGNORECASE
)

_FILE = re.compile(
    r"(?<![\w/.:~@$%{<+-])(?:\./)?((?:[\w.+-]{1,100}/){0,12}"
    r"(?:[\w.+-]{0,100}\.\w{1,10}|(?:Make|Docker|Rake|Gem|Proc|Jenkins)file|README|LICENSE))(?![\w/(])"
)
"""Names that may be a file of the workspace."""
_MOST_FILES = 20
"""Files that a task names and that are remembered."""
_STATES = re.compile(
    r"\b(?:sa(?:ys|id)|specif(?:y|ies|ied)|states?|contains?|holds?|defines?|describes?|lists?|shows?|requires?|mentions?"
    r"|documents?|explains?|declares?|recommends?|reads|computes|calculates|implements|provides|returns"
    r"|prints|exports|imports|parses|handles|includes|has|sets)\b"
    r"|(?:\bis|'s)\s+(?:an?|the)\s+(?:[\w-]{1,30}\s+){0,3}(?:script|module|program|app|application|library|package|class|tool"
    r"|server|client|document|guide|configuration|list|wrapper|test)\b",
    re.IGNORECASE,
)
_BY_WORD_OF = re.compile(r"\baccording to \W{0,4}$", re.IGNORECASE)
_NO_STATEMENT = re.compile(
    r"\b(?:not|cannot|no|never|neither|missing|unable|if|once|would|could|should|may|might|can|will|must|create|add|write|put"
    r"|usually|typically|often|generally|normally|commonly|likely|probably|perhaps|seems?|suppose|assum\w+|examples?"
    r"|please|let\ me|need|want)\b|n't\b|\?",
    re.IGNORECASE,
)
"""Words that make a sentence about a file advice, a doubt, or news that it is not there."""
_ITSELF = re.compile(
    r"\W{0,4}(?:it|(?:this|the)\s+(?:\w{1,20}\s+)?(?:file|script|module|program|document))\b", re.IGNORECASE
)
"""How a sentence begins that is about the only file in question."""

_WROTE = re.compile(
    r"\b(?:created|wrote|written|added|saved|generated|updated|modified|changed|edited|rewrote|renamed|fixed|implemented"
    r"|extended|refactored)\b",
    re.IGNORECASE,
)
_NOT_WRITTEN = re.compile(
    r"\b(?:not|never|should|would|could|will|may|might|if|once|can|must|already|previously|you|unchanged)\b|n't\b|\?",
    re.IGNORECASE,
)
_KIND_OF_FILE = re.compile(
    r"\.(?:py|pyi|go|rs|[cm]?[jt]sx?|java|kt|rb|php|cs|cc?|cpp|h|hpp|swift|scala|dart|ex|exs|zig|ml|hs|clj|lua|pl|r|sh|bat"
    r"|ps1|sql|html|css|vue|svelte|md|rst|txt|tex|json|ya?ml|toml|csv|tsv|ini|cfg|conf|env|lock|xml|svg|png|pdf|ipynb|tf"
    r"|proto|nix|gradle|cmake|log|diff|patch)$",
    re.IGNORECASE,
)
_IS_FILE = re.compile(rf"/|{_KIND_OF_FILE.pattern}|file$|README|LICENSE", re.IGNORECASE)
"""An answer names methods and fields (`url.User`) as well."""
_GONE = re.compile(
    r"\b(?:renam|remov|delet|mov|replac|split|merg|clean|revert|drop|archiv|support|handl|extension|suffix|pattern)\w*",
    re.IGNORECASE,
)
"""Words of a sentence in which a file may have been written and be there no more, or be a kind of file."""
_NAMED_AS_MADE = r"\b(?:created|wrote|written|saved|generated)\b[^.;\n`]{{0,40}}(?<![\w/.]){}(?!\w)"
_PRODUCT = re.compile(r"[A-Z]\w*\.js")
"""Node.js, Vue.js."""
_RAN = re.compile(
    r"\b(?:ran|executed|(?:verified|tested|checked|confirmed)\s+(?:\w+\s+){0,3}(?:with|by|via))\s+"
    r"`([^`\n]{3,160})`"
)
_MEASURED = re.compile(
    r"\b(?:took|takes|ran\ in|runs\ in|measured|faster|slower|speed-?up|reduced|dropped|improved|accuracy|coverage"
    r"|latency|throughput|score[ds]?|f1|precision|recall|error\ rate|size)\b",
    re.IGNORECASE | re.VERBOSE,
)
_EXPECTED = re.compile(
    r"\b(?:should|would|could|will|may|might|expect\w*|about|roughly|approximately|around|target|at\ (?:least|most)"
    r"|require\w*|limit|threshold|if|goal)\b|[~≈<>≤≥]|\?",
    re.IGNORECASE | re.VERBOSE,
)
_FIGURE = re.compile(
    r"(?<![\w.])\d[\d,]*(?:\.\d+)?\ ?(?:%|ms|s|seconds|minutes|x|×|[kMG]B)(?![\w])", re.VERBOSE
)
"""A number with its unit, as it is compared with what results say."""


@lru_cache(maxsize=8)
def files_named(task: str) -> tuple[str, ...]:
    """Names in a task that may be files of the workspace, each once."""
    return tuple(dict.fromkeys(_FILE.findall(task[:_LONGEST])))[:_MOST_FILES]


def files_claimed(answer: str, named: Collection[str], *, only: bool = False) -> tuple[str, ...]:
    """Of the `named` files, those of which the answer states what they hold. `only`: it can be about no others, so that
    "It defines …" says so of the one that is named.
    """
    if not named:
        return ()
    alone = tuple(named) if only and len(named) == 1 else ()
    sentences = _SENTENCE.split(_FENCE.sub("", answer[:_LONGEST]))
    claimed = [
        path
        for sentence in sentences
        if not _NO_STATEMENT.search(sentence)
        for path in _stated(sentence, alone)
        if path in named
    ]
    return tuple(dict.fromkeys(claimed))


def _stated(sentence: str, alone: tuple[str, ...]) -> Iterator[str]:
    """The files of which a sentence says something, as its subject or its source; `alone`: see `files_claimed`."""
    said = [match.start() for match in _STATES.finditer(sentence)]
    found = list(_FILE.finditer(sentence))
    for match in found:
        if (said and match.end() <= said[-1]) or _BY_WORD_OF.search(sentence, 0, match.start()):
            yield match[1]
    if not found and said and _ITSELF.match(sentence):
        yield from alone


def claims_pass(answer: str, kind: Kind = "tests") -> str:
    """The sentence of an answer that says that a check passes; "" if it says no such thing, or says it with a
    doubt.
    """
    text = _plain(answer)
    return "" if _HONEST.search(text) else claimed(text, kind)


def claimed(answer: str, kind: Kind) -> str:
    """The sentence of an answer that says that a check passed, whatever the rest of it says; "" if none does."""
    text = _plain(answer)
    for sentence in _SENTENCE.split(text) if _CLAIMS[kind].search(text) else ():
        if _CLAIMS[kind].search(sentence) and not (_DOUBT.search(sentence) or _ONE_TEST.search(sentence)):
            return clipped(" ".join(sentence.split()).strip(" -*#>"), _LONGEST_QUOTE)
    return ""


def speaks_of(answer: str, kind: Kind, command: str) -> bool:
    """Tell if an answer in any language may speak of a check: it names the command between backticks, or says of tests
    in one of a few languages that they pass. No more follows than that the check is shown.
    """
    text = _plain(answer)
    spans = (span.strip() for span in _SPAN.findall(text))
    named = any(span and f"{command} ".startswith(f"{span} ") for span in spans)
    return named or (kind == "tests" and _PASSES_ABROAD.search(text) is not None)


def files_written(answer: str) -> tuple[str, ...]:
    """The files of which an answer says that they were written or changed, each once."""
    # A command between backticks has names of files in it too.
    text = _SPAN.sub(lambda span: "" if " " in span[0] else span[0], _FENCE.sub("", answer[:_LONGEST]))
    sentences = _SENTENCE.split(text)
    said = (one for one in sentences if _WROTE.search(one) and not _NOT_WRITTEN.search(one))
    names = dict.fromkeys(path for one in said for path in _FILE.findall(one) if _IS_FILE.search(path))
    return tuple(names)[:_MOST_FILES]


def files_made(answer: str) -> tuple[str, ...]:
    """Of these, the ones that are there now if the answer is right: between backticks, with a folder, or named right
    after the word for it.
    """
    text = _FENCE.sub("", answer[:_LONGEST])
    gone = [one for one in _SENTENCE.split(text) if _GONE.search(one)]
    return tuple(
        path
        for path in files_written(answer)
        if _KIND_OF_FILE.search(path)
        and not path.rpartition("/")[2].startswith(".")
        and not any(path in one for one in gone)
        and ("/" in path or f"`{path}`" in text or _said_to_be_made(text, path))
    )


def _said_to_be_made(text: str, path: str) -> bool:
    said = re.search(_NAMED_AS_MADE.format(re.escape(path)), text, re.IGNORECASE)
    return said is not None and not _PRODUCT.fullmatch(path)


def commands_run(answer: str) -> tuple[str, ...]:
    """The commands of which an answer says that they were run, as it writes them between backticks."""
    return tuple(dict.fromkeys(_RAN.findall(answer[:_LONGEST])))[:_MOST_FILES]


def figures_measured(answer: str) -> tuple[str, ...]:
    """The figures with a unit of which an answer says that they were measured, as it writes them."""
    sentences = _SENTENCE.split(_FENCE.sub("", answer[:_LONGEST]))
    said = (one for one in sentences if _MEASURED.search(one) and not _EXPECTED.search(one))
    return tuple(dict.fromkeys(match[0] for one in said for match in _FIGURE.finditer(one)))[:_MOST_FILES]


@lru_cache(maxsize=4)
def _plain(answer: str) -> str:
    """The beginning and the end of an answer without its code; what says that nothing fails says that it is clean."""
    if len(answer) > _LONGEST:
        half = _LONGEST // 2
        answer = f"{answer[:half]}\n{answer[-half:]}"
    return _NO_FAILURES.sub("cleanly", _FENCE.sub("", answer))
