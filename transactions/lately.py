"""Lately: what came of the checks of the last hour, and how long its transactions were undecided."""

from datetime import timedelta

from django.utils import timezone

from store import blocking
from store.ids import first_id_of
from store.statements import Statement

CHECK_OUTCOMES = Statement(__file__, "check_outcomes")
HALF_TO_END = Statement(__file__, "half_to_end")

OUTCOMES = ("decided", "unknown", "unanswered", "handed_out", "unreached")
QUANTILES = ("0.5", "0.99")
MAX_COUNTED = 100_000
MAX_LOOKED_AT = 10_000


def checks() -> dict[str, int]:
    """Checks of the last hour, the latest MAX_COUNTED, by outcome. An unreached one asked nobody and does not count."""
    since = timezone.now() - timedelta(hours=1)
    rows = blocking.read(CHECK_OUTCOMES, {"since_id": first_id_of(since), "max_count": MAX_COUNTED})
    return dict.fromkeys(OUTCOMES, 0) | {row.outcome: row.checks for row in rows}


def seconds_undecided() -> dict[str, float]:
    """Quantiles of the seconds from half to end, of the last hour's latest decisions; none when there were none."""
    [row] = blocking.read(HALF_TO_END, {"max_count": MAX_LOOKED_AT})
    return dict(zip(QUANTILES, map(float, row.seconds), strict=True)) if row.seconds is not None else {}
