"""The deletes of half messages of topics that leave a database."""

from store.db.statements import Statement
from transactions.rows import HalvesOf

COUNT_HALVES_OF = Statement(__file__, "count_halves_of", HalvesOf)
PURGE_HALVES = Statement(__file__, "purge_halves", one=int)
