"""Charts in the form that Chart.js accepts: the data of bars and lines, and plain axes."""

import json
from collections.abc import Mapping, Sequence
from statistics import median

# Colours of a chart's series, in their order. A name that means an outcome has the same colour in each chart.
COLOURS = (
    *("var(--color-primary-500)", "var(--mq-rolled-back)", "var(--color-primary-700)", "var(--color-base-400)"),
    "var(--color-primary-300)",
)
OUTCOMES = {
    "committed": "var(--mq-committed)",
    "rolled back": "var(--mq-rolled-back)",
    "discarded": "var(--mq-alarm)",
    "dead letters": "var(--mq-alarm)",
}
GREY = "#9ca3af"
MAX_BAR_PIXELS = 28
# Up to this number of bars, each bar has a label; if there are more, only some of the bars have a label.
ALL_LABELS = 24
FEW_LABELS = 12
# When the highest value is this many times the median, the axis is logarithmic, so that the other values stay visible.
OUTLIER = 100

Values = Sequence[float | None]


def bars(labels: Sequence[str], series: Mapping[str, Values]) -> str:
    """A set of bars for each series."""
    return _data(labels, series, ("backgroundColor",), {"borderRadius": 2, "maxBarThickness": MAX_BAR_PIXELS})


def lines(labels: Sequence[str], series: Mapping[str, Values]) -> str:
    """A line for each series, with a gap for None, and a dot for a single value between gaps."""
    style = {"borderWidth": 1.5, "pointRadius": 1.2, "tension": 0}
    return _data(labels, series, ("borderColor", "backgroundColor"), style)


def _data(
    labels: Sequence[str], series: Mapping[str, Values], coloured: Sequence[str], style: Mapping[str, float]
) -> str:
    datasets = []
    for number, (name, values) in enumerate(series.items()):
        colour = OUTCOMES.get(name, COLOURS[number % len(COLOURS)])
        datasets.append({"label": name, "data": list(values), **style, **dict.fromkeys(coloured, colour)})
    return json.dumps({"labels": list(labels), "datasets": datasets})


def options(
    labels: Sequence[str], series: Mapping[str, Values], *, stacked: bool = False, legend: bool | None = None
) -> str:
    """The options of a chart: one tooltip for all values at a position, and a logarithmic axis if
    there is an outlier.
    """
    ticks: dict[str, object] = {"color": GREY}
    few = {"autoSkip": False} if len(labels) <= ALL_LABELS else {"maxTicksLimit": FEW_LABELS, "maxRotation": 0}
    named = len(series) > 1 if legend is None else legend
    kind = "logarithmic" if not stacked and has_outlier(series) else "linear"
    return json.dumps(
        {
            "animation": False,
            "maintainAspectRatio": False,
            "interaction": {"mode": "index", "intersect": False},
            "plugins": {"legend": {"display": named, "labels": {"color": GREY, "boxWidth": 10}}},
            "scales": {
                "x": {"stacked": stacked, "grid": {"display": False}, "ticks": {**ticks, **few}},
                "y": {
                    "type": kind,
                    "beginAtZero": True,
                    "stacked": stacked,
                    "border": {"display": False},
                    "grid": {"lineWidth": 0.5},
                    "ticks": ticks,
                },
            },
        }
    )


def has_outlier(series: Mapping[str, Values]) -> bool:
    """Whether the highest value is at least OUTLIER times the median of the values above 0."""
    values = [value for of_one in series.values() for value in of_one if value]
    return len(values) > 2 and max(values) > OUTLIER * median(values)
