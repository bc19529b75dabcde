"""Times, durations and numbers as text for operators."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from console.monitoring.counts import GROUP_LIMIT, Count, failures, up_to
from store.messages import times
from transactions.results import TransactionPart

register = template.Library()

UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


@register.filter
def duration(seconds: float | timedelta) -> str:
    """A duration in its two largest units: `3 min 5 s`, `2 d 4 h`."""
    left = int(seconds.total_seconds() if isinstance(seconds, timedelta) else seconds)
    parts = []
    for size, unit in UNITS:
        if left >= size:
            parts.append(f"{left // size} {unit}")
            left %= size
        elif parts:
            break
    return " ".join(parts[:2]) or "0 s"


@register.filter
def number(value: int) -> str:
    """A number with separated thousands."""
    return f"{value:,}"


@register.filter
def total(numbers: Iterable[int]) -> int:
    """The sum of numbers."""
    return sum(numbers)


@register.filter
def milliseconds(value: float) -> str:
    """A short time; from a second on in seconds."""
    return f"{value / 1000:.1f} s" if value >= 1000 else f"{value:.0f} ms"


@register.filter
def rate(value: float) -> str:
    """A number per second; a small number has a decimal."""
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.1f}"


@register.filter
def up_to_limit(counted: int) -> Count:
    """A count that is shown as at most GROUP_LIMIT. `counted` stops at GROUP_LIMIT + 1: then there are more."""
    return up_to(GROUP_LIMIT, counted)


@register.filter
def topics(messages: Iterable[TransactionPart]) -> list[str]:
    """The topics of a transaction's messages, each once."""
    return list(dict.fromkeys(message.topic for message in messages))


@register.filter
def of(found: Mapping[Any, Any], name: object) -> Any:
    """The value of a mapping under a name, or None."""
    return found.get(name)


@register.filter
def field_words(name: str) -> str:
    """The name of a field as words: `producer group`."""
    return name.replace("_", " ")


@register.filter
def as_query(given: Mapping[str, str]) -> str:
    """Parameters as the query of an address."""
    return urlencode(given or {})


@register.simple_tag
def hour(text: str) -> SafeString | str:
    """An hour, from its beginning as ISO 8601."""
    try:
        moment = times.in_utc(datetime.fromisoformat(text))
    except ValueError:
        return text
    words = moment.strftime("%Y-%m-%d %H:%M UTC")
    return format_html('<time datetime="{}" title="{}" data-hour>{}</time>', moment.isoformat(), words, words)


@register.simple_tag
def ago(moment: datetime | None, now: datetime) -> SafeString | str:
    """The time since a moment. A tooltip shows the exact time."""
    return pointed(moment, duration(max(now - moment, timedelta())) + " ago") if moment else "never"


@register.simple_tag
def between(since: datetime | None, until: datetime | None) -> str:
    """The time between two moments; below a minute to the millisecond."""
    if since is None or until is None:
        return "–"
    took = max(until - since, timedelta())
    seconds = took.total_seconds()
    return duration(took) if seconds >= 60 else f"{seconds:.3f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


@register.simple_tag
def age(moment: datetime | None, now: datetime) -> SafeString | str:
    """The age since a moment. A tooltip shows the exact time."""
    return pointed(moment, duration(max(now - moment, timedelta()))) if moment else "–"


@register.simple_tag
def due(moment: datetime | None, now: datetime) -> SafeString | str:
    """The time until a due time, or the time since then."""
    if moment is None:
        return "–"
    left = moment - now
    if abs(left) < timedelta(seconds=1):
        return pointed(moment, "due now")
    return pointed(moment, f"in {duration(left)}" if left > timedelta() else f"due for {duration(-left)}")


@register.simple_tag
def circuit(called: Any, now: datetime) -> str:
    """The reason why a server that failed is not called, and when it is called again; empty for any other server."""
    if called.state not in ("open", "half_open"):
        return ""
    is_later = called.state == "open" and called.open_until is not None and called.open_until > now
    next_try = f"in {duration(called.open_until - now)}" if is_later else "with the next call"
    return f"paused after {failures(called.failures)}, next try {next_try}"


@register.simple_tag
def clock(moment: datetime | None) -> SafeString | str:
    """The exact time in milliseconds, in UTC; console.js then shows it in the browser's time zone."""
    if moment is None:
        return "–"
    utc = exact(moment)
    return format_html('<time datetime="{}" title="{}" data-clock>{}</time>', moment.isoformat(), utc, utc)


@register.simple_tag
def zoned(moment: datetime, zone: str) -> SafeString:
    """A time in this time zone, to the second, and beside it in UTC; for a zone that tzdata lacks only in UTC."""
    utc = moment.astimezone(UTC)
    try:
        there = moment.astimezone(ZoneInfo(zone))
    except ZoneInfoNotFoundError:
        there = utc
    words = format_html("{}", there.strftime("%Y-%m-%d %H:%M:%S %Z"))
    if there.tzname() != "UTC":
        form = "%H:%M:%S UTC" if there.date() == utc.date() else "%Y-%m-%d %H:%M:%S UTC"
        words = format_html('{} <span class="mq-hint">{}</span>', words, utc.strftime(form))
    return format_html('<time datetime="{}" title="{}">{}</time>', utc.isoformat(), exact(moment), words)


def pointed(moment: datetime, words: str) -> SafeString:
    """A text about a moment. A tooltip shows the exact time."""
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact(moment), words)


def exact(moment: datetime) -> str:
    """A moment to the millisecond."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + " UTC"
