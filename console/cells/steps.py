"""The steps of a move, in their order; `console.cells.models.Move` draws them."""

PREPARED, FENCED, REPLAYED, PROMOTING = "prepared", "fenced", "replayed", "promoting"
PROMOTED, DIVIDED, OPENED, DONE = "promoted", "divided", "opened", "done"
UNDOING, UNDONE = "undoing", "undone"
# Steps at which the move can be undone, because no process uses the new database yet.
BEFORE_THE_MAP = (PREPARED, FENCED, REPLAYED, PROMOTING, PROMOTED, UNDOING)
# Steps at which the source may be fenced.
BEHIND_A_FENCE = (*BEFORE_THE_MAP, DIVIDED)
