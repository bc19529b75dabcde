"""Half messages of topics that leave a database."""

from typing import NamedTuple

from store.db.statements import Statement


class HalvesOf(NamedTuple):
    """Half messages of some topics; `torn` have messages of other topics, too, as the transaction `example`."""

    halves: int
    torn: int
    example: str | None


class PurgedHalves(NamedTuple):
    """How many half messages were deleted."""

    purged: int


COUNT_HALVES_OF = Statement(__file__, "count_halves_of", HalvesOf)
PURGE_HALVES = Statement(__file__, "purge_halves", PurgedHalves)
