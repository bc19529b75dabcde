"""Roles: what a console user may do, both in the console and at /v1.

A role is a group of Django. Each role may also do what the roles before it may do:

- viewer: reads everything but message bodies, which the group `bodies` adds.
- operator: decides, checks, redrives, resets, recalls, pauses and configures, and reads bodies.
- admin: manages keys, secrets and users, and deletes.
"""

from collections.abc import Iterable
from typing import Protocol

from django.contrib.auth.models import Group, User

from store.errors import NoPermission
from store.process import doors

ROLES = VIEWER, OPERATOR, ADMIN = ("viewer", "operator", "admin")
# The group of viewers that read message bodies, too.
BODIES = "bodies"
# The attribute of a user object that caches the names of its groups.
KEPT = "_roles"

# The actions of operators. Only an admin may do other actions, also unknown ones: keys, users, deletes, and actions
# that show a secret or set an address to which messages are sent.
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
        "subscription.change",
        "message.recall",
        "action.steer",
        *doors.added(doors.To.OPERATORS),
    )
)


class NamedGroups(Protocol):
    """The groups of a user, as a Django manager."""

    def values_list(self, field: str, /, *, flat: bool) -> Iterable[str]: ...


class ConsoleUser(Protocol):
    """The fields of a user that decide the role: a stored Django user, or the anonymous user of a request."""

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
    """The role of a console user; None for a user without any right. Read once per request."""
    return role_in(user) if user.is_authenticated and user.is_active else None


def role_in(user: ConsoleUser) -> str | None:
    """The role of a user, active or not; a superuser is an admin."""
    if user.is_superuser:
        return ADMIN
    return next((role for role in reversed(ROLES) if role in groups_of(user)), None)


def may(user: ConsoleUser, action: str) -> bool:
    """Whether a console user may do this action."""
    role = of(user)
    return role == ADMIN or (role == OPERATOR and action in OPERATORS)


def require(user: ConsoleUser, action: str) -> None:
    """Raises NoPermission, with the role that may do the action, unless the user may."""
    if not may(user, action):
        raise NoPermission(
            f"The console user {user.get_username()!r} is {of(user) or 'without a role'} and may not do this "
            f"({action}): sign in as {least(action)}, or use an API key with the scope manage."
        )


def least(action: str) -> str:
    """The lowest role that may do this action."""
    return OPERATOR if action in OPERATORS else ADMIN


def lost(name: str, action: str) -> str | None:
    """The reason why the console user with this name may not do this action now; None for a user who may."""
    user = User.objects.filter(username=name).first()
    if user is None:
        return f"the console user {name!r} does not exist any more"
    if not user.is_active:
        return f"the console user {name!r} is not active any more"
    return None if may(user, action) else f"the console user {name!r} is {of(user) or 'without a role'} now"


def may_read_bodies(user: ConsoleUser) -> bool:
    """Whether a console user may see the bodies of messages."""
    return of(user) in (OPERATOR, ADMIN) or (of(user) == VIEWER and BODIES in groups_of(user))


def assign(user: User, role: str | None, *, bodies: bool) -> None:
    """Gives a stored user this role, or none, and removes all other roles. `bodies` matters only for a viewer."""
    wanted = {role, BODIES} if role and bodies else {role} - {None}
    user.is_staff, user.is_superuser = role is not None, role == ADMIN
    user.save(update_fields=["is_staff", "is_superuser"])
    user.groups.remove(*Group.objects.filter(name__in={*ROLES, BODIES} - wanted))
    user.groups.add(*Group.objects.filter(name__in=wanted))
    vars(user).pop(KEPT, None)


def groups_of(user: ConsoleUser) -> frozenset[str]:
    """The names of a user's groups, cached in the user object, which each request loads again."""
    found: frozenset[str] | None = getattr(user, KEPT, None)
    if found is None:
        found = frozenset() if user.pk is None else frozenset(user.groups.values_list("name", flat=True))
        setattr(user, KEPT, found)
    return found
