"""The deletes of half messages of topics that leave a database."""

from typing import NamedTuple

from store.db.statements import Statement


class HalvesOf(NamedTuple):
    """The number of half messages of some topics; `torn` of them, as `example`, have messages of other topics too."""

    halves: int
    torn: int
    example: str | None


COUNT_HALVES_OF = Statement(__file__, "count_halves_of", HalvesOf)
PURGE_HALVES = Statement(__file__, "purge_halves", one=int)
