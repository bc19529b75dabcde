"""Runs actions in steps of at most STEP targets; any process may take the next step.

A step is one transaction of Django's connection, which holds the action's lock:

1. Check the role of the user by whose right the step is done. If the user has lost the role, pause the action.
2. Read the targets after `place`. Leave out targets that have an audit entry of this action: an interrupted step has
   already changed them.
3. Change the other targets. Each change has its own entry, in its own transaction.
4. Move `place` on, and commit.

So, when a process dies, a changed target is not changed again, and an unchanged target is found again. The changes are
also idempotent: a transaction has one decision, a dead letter one redrive.
"""

import time
import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import structlog
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from access import audit, roles
from access.audit import Outcome, Signature
from console.actions import kinds
from console.actions.models import Action
from console.actions.shapes import Call, Filter, Parameters
from store.db import connections, sync
from store.db.locks import TRY_LOCK_NAME
from store.errors import MessageIllegal, NoPermission, Refusal
from store.messages.texts import legible

logger = structlog.stdlib.get_logger(__name__)


STEP = 1000
# The most named targets of an action, which are stored in its row.
MAX_TARGETS = 1000
# Seconds of one run of beat's task; the next run continues.
MAX_ACTIONS = 20
RUN_SECONDS = 15.0
STEERING = {"pause": "paused", "continue": "running", "cancel": "cancelled"}
# The changes that an operator may make to an action's state, by the present state.
STEERED = {"running": ("pause", "cancel"), "paused": ("continue", "cancel")}


class ActionNotExist(Refusal):
    """There is no action with this id."""

    code = "not_found"


def of_targets(kind: str, targets: Sequence[str], parameters: Parameters, signature: Signature) -> Action:
    """Creates an action on these targets.

    Raises MessageIllegal for an empty list, or for too many targets.
    """
    if not 1 <= len(targets) <= MAX_TARGETS:
        raise MessageIllegal(f"{len(targets)} targets are chosen: choose 1 to {MAX_TARGETS}.")
    return _make(kind, signature, targets=list(dict.fromkeys(targets)), parameters=dict(parameters), total=len(targets))


def of_matching(kind: str, wanted: Filter, parameters: Parameters, signature: Signature) -> Action:
    """Creates an action on all targets that match now; targets that match only later are not changed."""
    bounded = kinds.matching(kind).bounded(wanted)
    total = kinds.matching(kind).count(bounded).rows
    return _make(kind, signature, wanted=bounded, parameters=dict(parameters), total=total)


def _make(kind: str, signature: Signature, **fields: Any) -> Action:
    with transaction.atomic():
        action = Action.objects.create(
            kind=kind,
            author=signature.author,
            reason=legible(signature.reason or "")[: audit.MAX_REASON],
            request_id=signature.request_id,
            **fields,
        )
        asked = {"kind": kind, **{name: fields[name] for name in ("wanted", "parameters", "total") if fields.get(name)}}
        audit.write(signature, "action.make", Outcome(action.id, asked))
        action.refresh_from_db()
    return action


def find(action_id: uuid.UUID, among: QuerySet[Action] | None = None) -> Action:
    """The action of this id.

    Raises ActionNotExist.
    """
    action = (Action.objects.all() if among is None else among).filter(id=action_id).first()
    if action is None:
        raise ActionNotExist(f"There is no action {action_id}: the console's page of actions lists the latest.")
    return action


def page(count: int) -> Sequence[Action]:
    """The latest actions."""
    return list(Action.objects.order_by("-created_at", "id")[:count])


def results(action: Action) -> dict[str, int]:
    """How many targets of an action have each result so far."""
    return audit.results(action.id)


def right_to(action: Action, way: str) -> str:
    """The name of the right that a change of the action needs: to continue it, the action's own right; to pause or
    cancel it, the operators' right.
    """
    return kinds.find(action.kind).action if way == "continue" else "action.steer"


def steer(action_id: uuid.UUID, way: str, signature: Signature) -> None:
    """Pauses, continues or cancels an action; a running step is finished first. The caller has checked `right_to`.

    Raises ActionNotExist, or MessageIllegal if its state does not allow it.
    """
    with audit.change(signature, "action.steer", action_id) as change, transaction.atomic():
        action = find(action_id, Action.objects.select_for_update())
        if way not in STEERED.get(action.state, ()):
            allowed = " or ".join(STEERED.get(action.state, ())) or "nothing"
            raise MessageIllegal(f"The action is {action.state} and accepts {allowed}, not {way[:20]}.")
        change.before, change.after = {"state": action.state}, {"state": STEERING[way]}
        action.state = STEERING[way]
        if way == "continue":
            action.continued_by, action.stopped = signature.author, None
        action.save(update_fields=["state", "continued_by", "stopped"])


def run(call: Call, late_seconds: float = 0) -> None:
    """Continues the running actions, for at most RUN_SECONDS; `call` runs a coroutine and returns its result.

    Actions that were created within the last `late_seconds` are left to another process.
    """
    until = time.monotonic() + RUN_SECONDS
    since = Now() - timedelta(seconds=late_seconds)
    running = Action.objects.filter(state="running", created_at__lte=since).order_by("created_at")
    for action_id in list(running.values_list("id", flat=True)[:MAX_ACTIONS]):
        try:
            while time.monotonic() < until and step(action_id, call):
                pass
        except Refusal as refusal:
            logger.warning("an action waits", action=str(action_id), reason=refusal.detail)


def step(action_id: uuid.UUID, call: Call) -> bool:
    """Does the next step of an action; returns whether there may be a further step for this process.

    Raises a temporary refusal, for instance while the database is away: the step is then repeated.
    """
    try:
        try:
            return _step(action_id, call)
        except Refusal as refusal:
            if refusal.is_for_now:
                Action.objects.filter(id=action_id, state="running").update(stopped=f"Waits: {refusal.detail}")
            raise
    except (OperationalError, InterfaceError) as problem:
        raise connections.away(problem) from problem


def _step(action_id: uuid.UUID, call: Call) -> bool:
    with transaction.atomic():
        if not sync.read(TRY_LOCK_NAME, {"name": str(action_id)})[0]:
            return False
        action = find(action_id)
        if action.state != "running" or _is_stopped(action):
            return False
        targets, cursor = _next(action)
        left = set(targets) - audit.recorded(action.id, targets)
        signature = Signature("user", action.acting, action.request_id, action.reason, action.id)
        if left:
            wanted = [target for target in targets if target in left]
            kinds.find(action.kind).run(wanted, action.parameters, signature, call)
        changes: dict[str, object] = (
            {"place": cursor} if cursor is not None else {"state": "done", "finished_at": Now()}
        )
        changes["stopped"] = None
        Action.objects.filter(id=action.id).update(**changes)
        return cursor is not None


def _is_stopped(action: Action) -> bool:
    """Pauses an action whose user has lost the role for it, with an audit entry. Returns whether it was paused."""
    needed = kinds.find(action.kind).action
    lost = roles.lost(action.acting, needed)
    if lost is None:
        return False
    refusal = NoPermission(
        f"The broker has paused this action, because its user has lost the right to do it ({needed}): {lost}. A user "
        f"with the role {roles.least(needed)} may continue the action under their own name; an operator may cancel it."
    )
    if Action.objects.filter(id=action.id, state="running").update(state="paused", stopped=refusal.detail):
        audit.write(Signature("user", action.acting, action.request_id), "action.step", Outcome(action.id, refusal))
    return True


def _next(action: Action) -> tuple[list[str], Any]:
    """The targets of the next step, and the cursor after them; None after the last targets."""
    if action.targets is None:
        return kinds.matching(action.kind).next(action.wanted or {}, action.place, STEP)
    begin = action.place or 0
    end = begin + STEP
    return action.targets[begin:end], end if end < len(action.targets) else None
