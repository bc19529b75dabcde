"""Draws the time charts of the page in SVG: stacked bars by hour, with the highest value and the
names of the series.
"""

from html import escape

from analytics.reports.charts import Chart

WIDTH, HEIGHT, LINE = 960, 150, 18
MAX_BAR_WIDTH = 24
COLORS = ("#3b76c4", "#c2573a", "#7a8798", "#d3a02a")


def over_time(chart: Chart) -> str:
    """Draws a chart whose labels are hours; returns an empty text for a chart without values."""
    totals = [sum(values[number] or 0 for values in chart.series.values()) for number in range(len(chart.labels))]
    highest = max(totals, default=0)
    if highest <= 0:
        return ""
    step = WIDTH / len(totals)
    bars = "".join(_bar(chart, number, step, highest) for number in range(len(totals)))
    foot = HEIGHT + 2 * LINE
    return (
        f"<figure><figcaption><strong>{escape(chart.title)}</strong>, {escape(chart.about)}. "
        f"{_names(chart)}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {foot}" role="img" aria-label="{escape(chart.title)}">'
        f'<text x="0" y="{LINE - 5}">{highest:,.0f} in the highest hour</text>{bars}'
        f'<text x="0" y="{foot - 4}">{escape(chart.labels[0])}</text>'
        f'<text x="{WIDTH}" y="{foot - 4}" text-anchor="end">{escape(chart.labels[-1])}</text>'
        "</svg></figure>"
    )


def _bar(chart: Chart, number: int, step: float, highest: float) -> str:
    width, left = min(step * 0.8, MAX_BAR_WIDTH), number * step + step * 0.1
    parts, top = [], HEIGHT + LINE * 1.0
    for (name, values), color in zip(chart.series.items(), COLORS, strict=False):
        height = (values[number] or 0) / highest * HEIGHT
        top -= height
        if height:
            said = f"{chart.labels[number]}: {name} {values[number]:,.0f}"
            parts.append(
                f'<path fill="{color}" d="M{left:.1f} {top:.1f}h{width:.1f}v{height:.1f}h-{width:.1f}z">'
                f"<title>{escape(said)}</title></path>"
            )
    return "".join(parts)


def _names(chart: Chart) -> str:
    if len(chart.series) == 1:
        return ""
    named = zip(chart.series, COLORS, strict=False)
    return " ".join(f'<span class="key" style="color: {color}">■ {escape(name)}</span>' for name, color in named)
