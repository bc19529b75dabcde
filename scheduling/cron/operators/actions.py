"""The actions of the console on schedules."""

from console.actions.configuration import Thing, put
from scheduling.cron import registry

SCHEDULE = Thing(
    "schedule", registry.find, put(registry), "schedule.put", ("cron", "time_zone", "missed", "paused", "next_at")
)
PAUSE = "schedule.pause"

ACTIONS = (
    SCHEDULE.changed("schedule.change", "Change the times of the schedule", "Change", fields=registry.TIMES),
    SCHEDULE.changed("schedule.pause", "Pause schedules", "Pause", {"paused": True}, right=PAUSE),
    SCHEDULE.changed("schedule.continue", "Continue schedules", "Continue", {"paused": False}, right=PAUSE),
    SCHEDULE.acted("schedule.fire", "Fire schedules now", "Fire now", registry.fire),
    SCHEDULE.deleted("schedule.delete", "Delete schedules", "Delete", registry.remove),
)
