"""Roles: what a console user may do, in the console and at /v1 alike.

A role is a group of Django's, and each role may also do what the roles before it may:

- viewer: reads everything but message bodies, which the group `bodies` adds.
- operator: decides, checks, redrives, resets, recalls, pauses and configures, and reads bodies.
- admin: has keys, secrets, users and deletes.
"""

from collections.abc import Iterable
from typing import Protocol

from django.contrib.auth.models import Group, User

from store.errors import NoPermission

ROLES = VIEWER, OPERATOR, ADMIN = ("viewer", "operator", "admin")
# The group of viewers that read message bodies, too.
BODIES = "bodies"
# The attribute of a user under which the names of its groups are kept.
KEPT = "_roles"

# What an operator may do. Every other action, one that is not named anywhere too, is an admin's: keys, users, deletes,
# and what gives a secret or an address that messages are sent to.
OPERATORS = frozenset(
    (
        "transaction.check",
        "transaction.commit",
        "transaction.rollback",
        "discarded.resume",
        "topic.put",
        "producer_group.put",
        "endpoint.change",
        "endpoint.test",
        "consumer_group.put",
        "offsets.reset",
        "dead_letter.redrive",
        "schedule.fire",
        "schedule.pause",
        "subscription.change",
        "message.recall",
        "action.steer",
    )
)


class NamedGroups(Protocol):
    """The groups of a user: a manager of Django's."""

    def values_list(self, field: str, /, *, flat: bool) -> Iterable[str]: ...


class ConsoleUser(Protocol):
    """What a role is read from: a user of Django's, a stored one or the anonymous one of a request."""

    @property
    def pk(self) -> object: ...
    @property
    def is_authenticated(self) -> bool: ...
    @property
    def is_active(self) -> bool: ...
    @property
    def is_superuser(self) -> bool: ...
    @property
    def groups(self) -> NamedGroups: ...
    def get_username(self) -> str: ...


def of(user: ConsoleUser) -> str | None:
    """The role of a console user, None for one that may not even look; read once per request."""
    return role_in(user) if user.is_authenticated and user.is_active else None


def role_in(user: ConsoleUser) -> str | None:
    """The role of a user, also of one that is not active; a superuser is an admin."""
    if user.is_superuser:
        return ADMIN
    return next((role for role in reversed(ROLES) if role in groups_of(user)), None)


def may(user: ConsoleUser, action: str) -> bool:
    """Whether a console user may do this."""
    role = of(user)
    return role == ADMIN or (role == OPERATOR and action in OPERATORS)


def require(user: ConsoleUser, action: str) -> None:
    """Raises NoPermission, which names the role that may."""
    if not may(user, action):
        raise NoPermission(
            f"The console user {user.get_username()!r} is {of(user) or 'without a role'} and may not do this "
            f"({action}): sign in as {least(action)}, or use an API key with the scope manage."
        )


def least(action: str) -> str:
    """The least role that may do this."""
    return OPERATOR if action in OPERATORS else ADMIN


def lost(name: str, action: str) -> str | None:
    """Why the console user of this name may not do this now; None for one that may."""
    user = User.objects.filter(username=name).first()
    if user is None:
        return f"the console user {name!r} does not exist any more"
    if not user.is_active:
        return f"the console user {name!r} is not active any more"
    return None if may(user, action) else f"the console user {name!r} is {of(user) or 'without a role'} now"


def may_read_bodies(user: ConsoleUser) -> bool:
    """Whether a console user may see the bodies of messages."""
    return of(user) in (OPERATOR, ADMIN) or (of(user) == VIEWER and BODIES in groups_of(user))


def assign(user: User, role: str, *, bodies: bool) -> None:
    """Gives a stored user one role and takes every other one away; `bodies` counts for a viewer."""
    wanted = {role, BODIES} if bodies else {role}
    user.is_staff, user.is_superuser = True, role == ADMIN
    user.save(update_fields=["is_staff", "is_superuser"])
    user.groups.remove(*Group.objects.filter(name__in={*ROLES, BODIES} - wanted))
    user.groups.add(*Group.objects.filter(name__in=wanted))
    vars(user).pop(KEPT, None)


def groups_of(user: ConsoleUser) -> frozenset[str]:
    """The names of a user's groups. Kept with the user, whom each request loads anew."""
    found: frozenset[str] | None = getattr(user, KEPT, None)
    if found is None:
        found = frozenset() if user.pk is None else frozenset(user.groups.values_list("name", flat=True))
        setattr(user, KEPT, found)
    return found
