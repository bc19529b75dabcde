"""The steps of a move, in their order; `console.cells.models.Move` draws them."""

PREPARED, FENCED, REPLAYED, PROMOTING = "prepared", "fenced", "replayed", "promoting"
PROMOTED, DIVIDED, OPENED, DONE, UNDONE = "promoted", "divided", "opened", "done", "undone"
# What can be undone: no process knows the new database.
BEFORE_THE_MAP = (PREPARED, FENCED, REPLAYED, PROMOTING, PROMOTED)
# At these the source may be fenced.
BEHIND_A_FENCE = (*BEFORE_THE_MAP, DIVIDED)
