"""The figures of one measurement, and the medians of several."""

from dataclasses import asdict, dataclass, fields
from statistics import median


@dataclass
class Figures:
    """The figures of one round; CPU in microseconds and WAL in bytes, both per operation. None if not measured."""

    per_second: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    web_cpu_us: float | None = None
    postgres_cpu_us: float | None = None
    wal_bytes: float | None = None
    load_cpu_us: float | None = None
    refused: float | None = None
    # The ratio to the yardstick in the same round; below, the ratios to another side.
    of_limit: float | None = None
    of_other: float | None = None
    # The other side's CPU per operation (web and PostgreSQL, or the client) divided by this side's: other load of the
    # machine hardly changes this ratio.
    cpu_of_other: float | None = None

    @property
    def server_cpu_us(self) -> float:
        """The CPU per operation of web process and PostgreSQL."""
        return (self.web_cpu_us or 0.0) + (self.postgres_cpu_us or 0.0)

    def known(self) -> dict[str, float]:
        """The figures that were measured, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def ratio(one: float | None, other: float | None) -> float | None:
    """This figure divided by the other; None if one of the two is missing."""
    return one / other if one and other else None


def medians(rounds: list[Figures]) -> Figures:
    """The median of each figure over the rounds that measured it."""
    found = {field.name: [getattr(one, field.name) for one in rounds] for field in fields(Figures)}
    known = {name: [value for value in values if value is not None] for name, values in found.items()}
    return Figures(**{name: median(values) for name, values in known.items() if values})
