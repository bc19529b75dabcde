"""The rows of moves: the running move, its step, and the process that works at it."""

import uuid

from django.db import IntegrityError, transaction
from django.utils import timezone

from access import audit
from access.audit import Outcome, Signature
from console.cells import standing
from console.cells.errors import CellIllegal
from console.cells.models import Move

SHOWN = 10


def latest() -> list[Move]:
    """The latest moves, the newest first."""
    return list(Move.objects.order_by("-id")[:SHOWN])


def begin(move: Move, signature: Signature) -> Move:
    """Writes the row of a new move. Raises CellIllegal while another move runs."""
    try:
        with transaction.atomic():
            move.save()
            _enter(move, signature)
    except IntegrityError:
        raise _taken() from None
    return move


def require_none() -> None:
    """Raises CellIllegal while a move runs."""
    if Move.objects.filter(running=True).exists():
        raise _taken()


def _taken() -> CellIllegal:
    move = standing.read()
    return CellIllegal(
        f"An earlier move has not ended: {move.sentence if move else 'another process began it just now'}."
    )


def taken_over() -> Move:
    """Makes this process the holder of the unfinished move, and returns the move. Raises CellIllegal if there is none.

    The step is read after the holder has changed: until then the earlier process may note a further step, which may
    have changed the map.
    """
    holder = uuid.uuid4()
    with transaction.atomic():
        if not Move.objects.filter(running=True).update(holder=holder):
            raise CellIllegal("No move of topics is under way: `cells list` shows the cells.")
        return Move.objects.get(holder=holder)


def note(move: Move, step: str, signature: Signature, **fields: object) -> None:
    """Notes a finished step, with an audit entry. Raises CellIllegal when another process has taken over the move."""
    with transaction.atomic():
        _update(move, step=step, error="", **fields)
        _enter(move, signature)


def end(move: Move, step: str, signature: Signature, error: str = "") -> None:
    """Writes that the move has ended, with an audit entry. Raises CellIllegal when another process has taken over the
    move.
    """
    with transaction.atomic():
        _update(move, step=step, error=error, running=None, ended_at=timezone.now())
        _enter(move, signature)


def require_holder(move: Move) -> None:
    """Raises CellIllegal if another process has taken over the move."""
    if not Move.objects.filter(id=move.id, holder=move.holder, running=True).exists():
        raise _elsewhere(move)


def note_error(move: Move, error: str) -> None:
    """Notes why a move has stopped, for the console and `cells list`."""
    Move.objects.filter(id=move.id, holder=move.holder).update(error=error)


def _update(move: Move, **fields: object) -> None:
    if not Move.objects.filter(id=move.id, holder=move.holder, running=True).update(**fields):
        raise _elsewhere(move)
    for name, value in fields.items():
        setattr(move, name, value)


def _elsewhere(move: Move) -> CellIllegal:
    return CellIllegal(
        f"Another run of the command has taken over the move {move}: this run has stopped and changes nothing more."
    )


def _enter(move: Move, signature: Signature) -> None:
    action = "cell.move" if move.is_whole else "cell.split"
    after = {"move": move.id, "step": move.step, "source": move.source_name, "homes": list(move.homes)}
    audit.write(signature, action, Outcome(move.target_name, after))
