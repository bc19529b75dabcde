"""The nightly runs as operators see them: problems, a line on the page System, and a metric."""

from collections.abc import Iterator

from analytics.nightly import runs
from analytics.rows import Nights
from console.monitoring.scrape import ReadOnce, Sample, Shared
from console.monitoring.system import Beside

# A worker starts the nightly export within a tick of beat.
LATE_SECONDS = 600.0


def problems(nights: Nights) -> Iterator[str]:
    """The problems of the nightly runs, one sentence for each."""
    if nights.failure is not None:
        yield f"The nightly export of {nights.day} failed {nights.tries} times, at last: {nights.failure}."
    if nights.day != nights.due_day and LATE_SECONDS < nights.since < runs.HOURS * 3600:
        yield (
            f"No worker started the nightly export of {nights.due_day}: each needs the extra `analytics`, and its log "
            "says when it is missing."
        )


def beside() -> Beside:
    """The problems and the line of the nightly runs; nothing if no nightly export is configured."""
    nights = runs.latest()
    return Beside() if nights is None else of(nights)


def of(nights: Nights) -> Beside:
    """The problems and the line of these nightly runs."""
    return Beside(list(problems(nights)), "console/nights.html", nights)


def _outcomes(_: ReadOnce) -> Iterator[Sample]:
    if (nights := runs.latest()) is not None:
        yield from ((("succeeded",), nights.succeeded), (("failed",), nights.failed))


SURROUNDINGS = (beside,)
METRICS = (
    Shared(
        "mqbroker_nightly_exports_total",
        "Nightly exports that succeeded, and attempts that failed; no sample without a nightly export in the settings.",
        _outcomes,
        labels=("outcome",),
        counter=True,
    ),
)
