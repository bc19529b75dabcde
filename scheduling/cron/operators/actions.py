"""The actions of the console on schedules."""

from collections.abc import Mapping
from typing import Any

from access import audit
from access.audit import Signature, picture
from console.actions.configuration import Thing, put
from console.actions.shapes import Parameters
from console.actions.shown_once import Once, Shown
from scheduling.cron import registry
from scheduling.cron.models import Schedule
from store.db.fields import MAX_TEXT, Field, Json, Text, Words

SHOWN_TIMES = 3
# The parts of a schedule's message, each as an input. The action runs in the request that has the form, so that no row
# of an action keeps the body.
PARTS: tuple[Field, ...] = (
    Text("topic", "Topic", help="Where the message is sent", needed=True),
    Text("body", "Body", help="The text of each message", most=registry.MAX_BYTES, has_lines=True),
    Text("tags", "Tags"),
    Words("keys", "Keys", help="For look-up", pattern=r"\S+", rule="a word", most=100, between=" "),
    Json("properties", "Properties", help="An object of texts", parse=lambda given: given, schema=dict[str, str]),
    Text("sharding_key", "Sharding key", most=MAX_TEXT),
)
NAMES = tuple(part.name for part in PARTS)
SCHEDULE = Thing(
    "schedule", registry.find, put(registry), "schedule.put", ("cron", "time_zone", "missed", "paused", "next_at")
)
PAUSE = "schedule.pause"


def make(target: str, values: Parameters, signature: Signature) -> Shown:
    """Creates a schedule of this name. Raises MessageIllegal when the name is in use, and the registry's refusals."""
    columns = {name: value for name, value in values.items() if name not in NAMES}
    with audit.change(signature, SCHEDULE.action, target) as change:
        SCHEDULE.require_absent(target, registry.named(target))
        row, _ = registry.put(target, {**columns, registry.MESSAGE: _message({}, values)})
        change.after = picture(row)
    return shown(row)


def change_message(target: str, values: Parameters, signature: Signature) -> Shown:
    """Changes parts of a schedule's message; without a body the message keeps its body."""
    with audit.change(signature, SCHEDULE.action, target) as change:
        found = registry.find(target)
        change.before = picture(found)
        row, _ = registry.put(target, {registry.MESSAGE: _message(found.message, values)})
        change.after = picture(row)
    return shown(row)


def _message(present: Mapping[str, Any], values: Parameters) -> dict[str, Any]:
    parts = {**present, **{name: values[name] for name in NAMES if name in values}}
    return {name: value for name, value in parts.items() if value is not None}


def shown(row: Schedule) -> Shown:
    """The lines that the page shows about a schedule that was created or changed."""
    times = ", ".join(f"{at:%Y-%m-%d %H:%M:%S} UTC" for at in registry.next_times(row, SHOWN_TIMES))
    return Shown((("Schedule", row.name), ("Topic", row.message["topic"]), ("Next times", times or "none")))


ACTIONS = (
    Once(
        "schedule.make",
        "Make a schedule",
        "Make a schedule",
        make,
        noun=SCHEDULE.noun,
        right=SCHEDULE.action,
        fields=(*registry.TIMES, *PARTS),
        makes=True,
    ),
    Once(
        "schedule.message",
        "Change the message of the schedule",
        "Change the message",
        change_message,
        noun=SCHEDULE.noun,
        right=SCHEDULE.action,
        fields=PARTS,
        standing=lambda target: registry.find(target).message,
    ),
    SCHEDULE.changed("schedule.change", "Change the times of the schedule", "Change the times", fields=registry.TIMES),
    SCHEDULE.changed("schedule.pause", "Pause schedules", "Pause", {"paused": True}, right=PAUSE),
    SCHEDULE.changed("schedule.continue", "Continue schedules", "Continue", {"paused": False}, right=PAUSE),
    SCHEDULE.acted("schedule.fire", "Fire schedules now", "Fire now", registry.fire),
    SCHEDULE.deleted("schedule.delete", "Delete schedules", "Delete", registry.remove),
)
