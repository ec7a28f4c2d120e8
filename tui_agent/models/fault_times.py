"""How long a provider asks to wait, and when a limit resets: headers, fields of a body, and words of all forms.

Times come in as values: `now` is aware of its zone, and a clock time without one is in the zone of `now`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from email.utils import parsedate_to_datetime
from zoneinfo import ZoneInfo

_UNITS = {
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds", "毫秒"), 0.001),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds", "秒", "秒钟"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes", "分", "分钟"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours", "小时"), 3_600.0),
    **dict.fromkeys(("d", "day", "days", "天"), 86_400.0),
    **dict.fromkeys(("w", "wk", "week", "weeks"), 604_800.0),
}
"""Seconds."""
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_PART = rf"(?:\d+(?:\.\d+)? ?-?|\b(?:an?|one) )(?:{_UNIT})(?![a-z])"
_DURATION = rf"{_PART}(?:(?:,? and |, ?| )?{_PART})*"
_ONE_PART = re.compile(rf"(?:(\d+(?:\.\d+)?) ?-?|\b(?:an?|one) )({_UNIT})(?![a-z])", re.IGNORECASE)
_WHOLE = re.compile(rf"\s*{_DURATION}\s*", re.IGNORECASE)
_LEADS = (
    r"(?:tr(?:y|ying)(?: \w+){0,2} again|retry\w*|wait\w*|come back|resets?|resetting|available again"
    r"|refill\w*|renew\w*|resumes?|back|expires?|cool(?:ing|s)?[- ]?down)"
)
_IN_WORDS = re.compile(
    rf"{_LEADS}(?:(?!every|each|per\b)[^.\d|\n]){{0,30}}?(?<![\w.])({_DURATION})", re.IGNORECASE
)
"""`try again in 2 hours 13 minutes`, `reset after 21h10m45s`; not `reset every 5h`."""
_BARE = re.compile(
    r"(?:retry[- _]after|retry in|try again in)[\"']?\W{0,4}(\d+(?:\.\d+)?)(?![\w:/-]|\.\d| ?[a-z])",
    re.IGNORECASE,
)
_AS_CLOCK = re.compile(
    rf"{_LEADS}[^.\d|\n]{{0,30}}?\b(\d{{1,3}}):(\d\d):(\d\d)\b(?! ?[ap]\.?m)", re.IGNORECASE
)
"""`try again in 02:13:00`: only behind `in` or `after`."""
_AFTER_WORD = re.compile(r"\b(?:in|after|within)\b[^.\d]{0,12}$", re.IGNORECASE)
_IN_CHINESE = re.compile(rf"(\d+(?:\.\d+)?) ?({_UNIT}) ?[后後]")

_WAIT_FIELDS = {
    "retry_after_ms": 0.001,
    "retryafterms": 0.001,
    "retry_after": 1.0,
    "retryafter": 1.0,
    "retry-after": 1.0,
    "retry_after_seconds": 1.0,
    "retrydelay": 1.0,
    "resets_in_seconds": 1.0,
    "reset_in_seconds": 1.0,
    "resets_in": 1.0,
    "reset_in": 1.0,
    "reset_after": 1.0,
    "reset_after_seconds": 1.0,
}
_RESET_FIELDS = (
    *("resets_at", "reset_at", "resetsat", "resetat", "reset_time", "resettime", "resets"),
    *(
        "x-ratelimit-reset",
        "quotaresettimestamp",
        "quota_reset_timestamp",
        "next_reset_time",
        "nextresettime",
    ),
)

_EPOCH = re.compile(
    r"(?:\||reset\w*\W{1,4}(?:at\W{1,3})?|until\W{1,3})(1[5-9]\d{8}|2\d{9})(\d{3})?\b", re.IGNORECASE
)
"""`limit reached|1788625200`, `resets 1788625200`."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTH = rf"(?:{'|'.join(_MONTHS)})[a-z]*\.?"
_TIME = r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?(?::\d\d)?(?: ?(?P<half>[ap])\.?m\b\.?)?"
_NAMED = r"(?-i:[A-Z][A-Za-z_]+/[A-Za-z_/+\-]+\d*|Z\b|UTC\b|GMT\b|Pacific\b|[A-Z]{1,3}T\b)"
_ZONE = rf"(?:\s*[(,]?\s*(?P<zone>{_NAMED}|[+-]\d\d:?\d\d)\)?)?"
_WHEN = (
    r"(?:resets?|try again|retry|available|regain access|come back|back|resumes?|until|renews?|after|returns?"
    r"|resetting)"
)
_DAY, _YEAR = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", r"(?: (?P<year>\d{4}),?)?"
_AT_TIME = rf"(?:,? (?:at )?{_TIME})?"
_GAP = r"[^.\n|\d]{0,40}?"
_MOMENTS = tuple(
    re.compile(rf"\b{_WHEN}\b{_GAP}{form}{_ZONE}", re.IGNORECASE)
    for form in (
        rf"(?P<year>\d{{4}})-(?P<number>\d\d)-(?P<day>\d\d)(?:[T ,]+(?:at )?{_TIME}(?:\.\d+)?)?",
        rf"\b(?P<month>{_MONTH}) {_DAY},?{_YEAR}{_AT_TIME}",
        rf"\b{_DAY} (?:de )?(?P<month>{_MONTH})(?: de)?,?{_YEAR}{_AT_TIME}",
        rf"\b(?P<weekday>{'|'.join(_DAYS)})[a-z]*,?(?: at)? {_TIME}",
        rf"\b(?P<tomorrow>tomorrow)(?:,? (?:at )?{_TIME})?",
        r"\b(?P<midnight>midnight)",
        rf"(?<!\bin )(?<!\bafter )(?<![\d:.]){_TIME}(?![\d:]|\s*(?:{_UNIT})\b)",
    )
)
"""Dates and times of the day behind a word that says that something begins again then."""
_IN_CHINESE_AT = re.compile(
    rf"(?P<year>\d{{4}})-(?P<number>\d\d)-(?P<day>\d\d)[T ]+{_TIME}{_ZONE}\s*(?:重置|恢复|重試|重试|后)",
    re.IGNORECASE,
)
"""The same, in front of such a word."""

_ALIASES = {
    "asia/calcutta": "Asia/Kolkata",
    "asia/saigon": "Asia/Ho_Chi_Minh",
    "asia/katmandu": "Asia/Kathmandu",
    "asia/rangoon": "Asia/Yangon",
    "europe/kiev": "Europe/Kyiv",
    "america/buenos_aires": "America/Argentina/Buenos_Aires",
    "us/pacific": "America/Los_Angeles",
    "us/eastern": "America/New_York",
    "us/central": "America/Chicago",
    "pacific/auckland": "Pacific/Auckland",
    "pacific": "America/Los_Angeles",
    "pt": "America/Los_Angeles",
    "et": "America/New_York",
    "ct": "America/Chicago",
    "mt": "America/Denver",
}
_OFFSETS: dict[str, float] = {
    "pst": -8,
    "pdt": -7,
    "mst": -7,
    "mdt": -6,
    "cst": -6,
    "cdt": -5,
    "est": -5,
    "edt": -4,
    "bst": 1,
}
_OFFSETS |= {"cet": 1, "eet": 2, "ist": 5.5, "jst": 9, "kst": 9}

JUST_PASSED = timedelta(minutes=15)
"""A time of the day that was reached so long ago is that moment, and not the same time tomorrow."""
FARTHEST = timedelta(days=62)
"""No limit resets later; what would is no time of a reset."""


def asked_wait(
    headers: Mapping[str, str], figures: Mapping[str, float | str], text: str, now: datetime
) -> float | None:
    """Seconds that the provider asks to wait, by its headers, its body's fields or its words; None: it does not say."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, headers.get(f"llm_provider-{name}", ""))
        wait = _wait(value, scale, now)
        if wait is not None:
            return wait
    for name, scale in _WAIT_FIELDS.items():
        wait = _wait(str(figures.get(name, "")), scale, now)
        if wait is not None:
            return wait
    return wait_in_words(text)


def wait_in_words(text: str) -> float | None:
    """Seconds that a text asks to wait, as a duration."""
    clock = _AS_CLOCK.search(text)
    if clock is not None and _AFTER_WORD.search(text[: clock.start(1)]):
        hours, minutes, seconds = (int(part) for part in clock.groups())
        return 3_600.0 * hours + 60.0 * minutes + seconds
    found = _IN_WORDS.search(text) or _IN_CHINESE.search(text)
    if found is not None:
        return seconds_in(found[0] if found.re is _IN_CHINESE else found[1])
    bare = _BARE.search(text)
    return float(bare[1]) if bare is not None else None


def seconds_in(duration: str) -> float | None:
    """`2 hours 13 minutes`, `6m0s`, `357ms` in seconds."""
    parts = _ONE_PART.findall(duration)
    if not parts:
        return None
    return sum(float(number or 1) * _UNITS[unit.lower()] for number, unit in parts)


def _wait(value: str, scale: float, now: datetime) -> float | None:
    """A header or field: a number, a duration, a date, an epoch; what is over is 0."""
    value = value.strip().strip("\"'")
    with suppress(ValueError):
        number = float(value) * scale
        if not math.isfinite(number):
            return None
        if number > 1e9:  # no wait, but a moment, perhaps in milliseconds
            number = (number / 1_000 if number > 1e11 else number) - now.timestamp()
        return max(0.0, number)
    if _WHOLE.fullmatch(value):
        return seconds_in(value)
    moment = _date(value)
    return None if moment is None else max(0.0, (moment - now).total_seconds())


def _date(value: str) -> datetime | None:
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        with suppress(ValueError, TypeError, OverflowError, IndexError):
            moment = read(value)
            return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return None


def reset_in_headers(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds until the limit of the headers that is used up resets: `x-ratelimit-reset-*`, `anthropic-ratelimit-*`."""
    found: list[tuple[bool, float]] = []
    for name, value in headers.items():
        plain = name.removeprefix("llm_provider-")
        if "ratelimit" not in plain or "reset" not in plain:
            continue
        wait = _wait(value, 1.0, now)
        if wait is None or wait > FARTHEST.total_seconds():
            continue
        left = headers.get(name.replace("reset", "remaining"))
        status = headers.get(name.replace("reset", "status"), "")
        used = (left is not None and _is_zero(left)) or status == "rejected"
        if used or left is None:
            found.append((used, wait))
    used_up = [wait for used, wait in found if used]
    return max(used_up or [wait for _, wait in found], default=None)


def _is_zero(value: str) -> bool:
    with suppress(ValueError):
        return float(value) <= 0
    return False


def reset_moment(figures: Mapping[str, float | str], text: str, now: datetime) -> datetime | None:
    """The moment at which a limit resets, as fields or words name it; None: they do not."""
    for moment in _moments(figures, text, now):
        if moment is not None and now - timedelta(days=1) < moment < now + FARTHEST:
            return moment
    return None


def _moments(figures: Mapping[str, float | str], text: str, now: datetime) -> Iterator[datetime | None]:
    for name in _RESET_FIELDS:
        value = str(figures.get(name, ""))
        wait = _wait(value, 1.0, now) if value else None
        if wait is not None:
            yield now + timedelta(seconds=min(wait, 1e9))
    for found in _EPOCH.finditer(text):
        yield datetime.fromtimestamp(int(found[1]), UTC)
    for form in (*_MOMENTS, _IN_CHINESE_AT):
        found_time = form.search(text)
        if found_time is not None:
            with suppress(ValueError, OverflowError):
                yield _moment(found_time, now)


def _moment(found: re.Match[str], now: datetime) -> datetime | None:
    said = found.groupdict()
    there = now.astimezone(_zone(said.get("zone")) or now.tzinfo)
    dated = any(said.get(part) for part in ("day", "weekday", "tomorrow", "midnight"))
    hour, minute = int(said.get("hour") or 0), int(said.get("minute") or 0)
    half = (said.get("half") or "").lower()
    if not dated and said.get("minute") is None and not half:
        return None  # a bare number is no time of the day
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    at = there.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if said.get("day"):
        return _on_its_day(at, said, there)
    if said.get("weekday"):
        ahead = (_DAYS.index(said["weekday"].lower()[:3]) - there.weekday()) % 7
        at += timedelta(days=ahead)
        return at if at > there - JUST_PASSED else at + timedelta(days=7)
    if said.get("tomorrow"):
        return at + timedelta(days=1)
    return at if at > there - JUST_PASSED else at + timedelta(days=1)


def _on_its_day(at: datetime, said: Mapping[str, str | None], there: datetime) -> datetime:
    month = (
        int(said["number"] or 0)
        if said.get("number")
        else _MONTHS.index((said["month"] or "").lower()[:3]) + 1
    )
    year = int(said["year"] or 0) if said.get("year") else there.year
    at = at.replace(year=year, month=month, day=int(said["day"] or 1))
    if not said.get("year") and at < there - timedelta(days=180):
        at = at.replace(year=year + 1)
    return at


def _zone(name: str | None) -> tzinfo | None:
    """A zone by its name or offset; None: not known here."""
    if not name:
        return None
    plain = _ALIASES.get(name.lower(), name)
    if plain.upper() in {"UTC", "GMT", "Z"}:
        return UTC
    if plain[0] in "+-":
        hours, minutes = int(plain[1:3]), int(plain[-2:])
        return timezone((1 if plain[0] == "+" else -1) * timedelta(hours=hours, minutes=minutes))
    if plain.lower() in _OFFSETS:
        return timezone(timedelta(hours=_OFFSETS[plain.lower()]))
    with suppress(KeyError, ValueError, OSError):
        return ZoneInfo(plain)
    return None
