"""Numbers as people read them: counts, durations, times. No widget here."""

from __future__ import annotations

import math
import time


def seconds(value: float) -> str:
    """A duration as people read it: `20 ms`, `0.4 s`, `12 s`, `3m 05s`, `1h 02m`."""
    value = min(max(0.0, value), _LONGEST)
    if 0.0 < value < 0.095:
        return f"{max(1, round(value * 1000))} ms"
    if value < 9.95:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02d}m"


_LONGEST = 3.6e9
"""Seconds; what takes longer, or never ends, is shown as this."""


def whole_seconds(value: float) -> str:
    """As `seconds`, for a time that is still counting: `3 s`, `3m 05s`."""
    return seconds(float(int(max(0.0, value)))).replace(".0 s", " s")


def compact(number: int) -> str:
    """A count in few cells: 950, 12.3k, 128k, 1.2M."""
    if number < 1000:
        return str(number)
    if number < 99_950:
        return f"{number / 1000:.1f}k"
    if number < 999_500:
        return f"{number / 1000:.0f}k"
    return f"{number / 1_000_000:.1f}M"


def counted(number: int, what: str) -> str:
    """`1 block`, `2 blocks`, `2,000 blocks`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def of_limit(count: int, limit: int, what: str) -> str:
    """`2 of 3 failures`; beyond the limit `4 failures, limit 3`."""
    return f"{count} of {limit} {what}" if count <= limit else f"{count} {what}, limit {limit}"


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `11th`."""
    suffix = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


_CARDINALS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def counted_in_words(number: int, what: str) -> str:
    """`one change`, `six changes`, `12 changes`."""
    word = _CARDINALS[number] if number < len(_CARDINALS) else f"{number:,}"
    return f"{word} {what}{'' if number == 1 else 's'}"


_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def ordinal_word(number: int) -> str:
    """`first`, `second`, up to `tenth`, then `11th`."""
    return _ORDINALS[number - 1] if 1 <= number <= len(_ORDINALS) else ordinal(number)


def dollars(cost: float) -> str:
    """USD: `$0`, `$0.0042`, `$1.37`."""
    if not cost:
        return "$0"
    return f"${cost:.4f}" if cost < 1 else f"${cost:.2f}"


def time_of_day(at: float) -> str:
    """The time of day, with the day if it is not today's."""
    moment = time.localtime(at)
    today = time.localtime()[:3] == moment[:3]
    return time.strftime("%H:%M:%S" if today else "%m-%d %H:%M", moment)


def resets(at: float, now: float) -> str:
    """When a limit resets: `resets 15:00 (in 2 h 13 min)`; moments since 1970."""
    return f"resets {clock_time(at, now)} ({_ahead(at - now)})"


def clock_time(at: float, now: float) -> str:
    """The time of the day, with the day if it is not today's: `15:00`, `Sun 15:00`, `14 Sep 15:00`."""
    try:
        moment, today = time.localtime(at), time.localtime(now)
    except (ValueError, OverflowError, OSError):
        return "at no time that a clock shows"
    near = time.strftime("%a ", moment) if abs(at - now) < 6 * 86_400 else time.strftime(" %b ", moment)
    day = f"{moment.tm_mday}{near}" if near.startswith(" ") else near
    return f"{'' if moment[:3] == today[:3] else day}{moment.tm_hour:02d}:{moment.tm_min:02d}"


def _ahead(left: float) -> str:
    """`in 2 h 13 min`, in the two largest units that there are."""
    minutes = max(0, math.ceil(left / 60))
    if left < 60:
        return "now" if left <= 0 else f"in {max(1, round(left))} s"
    parts = [(minutes // 1_440, "d"), (minutes % 1_440 // 60, "h"), (minutes % 60, "min")]
    while not parts[0][0]:
        parts.pop(0)
    return "in " + " ".join(f"{number} {unit}" for number, unit in parts[:2] if number)


def age(seconds: float) -> str:
    """How long ago, in at most six cells: 12 s, 5 min, 3 h, 9 d."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


def of_failures(failures: int, recovered: int, *, ended: bool = True) -> str:
    """Failures and what became of them: `9 failures: 4 recovered, 5 left open`; before the end, `5 open`."""
    left, still = failures - recovered, "left open" if ended else "open"
    if not failures:
        return "no failure"
    if recovered and left:
        return f"{counted(failures, 'failure')}: {recovered} recovered, {left} {still}"
    every = "" if failures == 1 else "both " if failures == 2 else "all "
    return f"{counted(failures, 'failure')}, {every}{'recovered' if recovered else still}"
