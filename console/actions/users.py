"""Actions on the users of the console: who may sign in, and which role each user has."""

from collections.abc import Callable

from access import accounts, audit
from access.accounts import Account
from access.audit import Signature
from console.actions.configuration import Thing
from console.actions.shapes import Parameters
from console.actions.shown_once import Once, Shown

USER = Thing(
    "user",
    accounts.find,
    lambda found, columns: accounts.change(found.name, columns),
    "user.change",
    ("role", "active"),
    accounts.picture,
)


def make(target: str, values: Parameters, signature: Signature) -> Shown:
    """Creates a user with a password of the broker's choice. Raises MessageIllegal for a name that is in use."""
    return _with_password(target, "user.make", signature, lambda hashed: accounts.make(target, hashed, values))


def give_password(target: str, values: Parameters, signature: Signature) -> Shown:
    """Gives a user a new password, which ends the user's sessions."""
    accounts.find(target)
    return _with_password(target, "user.password", signature, lambda hashed: accounts.set_password(target, hashed))


def _with_password(target: str, action: str, signature: Signature, write: Callable[[str], Account]) -> Shown:
    password, hashed = accounts.made_password()
    with audit.change(signature, action, target) as change:
        account = write(hashed)
        change.after = accounts.picture(account)
    lines = (("User", account.name), ("Role", account.role or "none"))
    return Shown((*lines, ("Then", "the user chooses another password under “Change password”")), password)


KINDS = (
    USER.changed("user.change", "Change the user", "Change", fields=(*accounts.FIELDS, accounts.ACTIVE), grave=True),
    USER.deleted("user.delete", "Delete users", "Delete", accounts.remove),
)
ONCE = (
    Once("user.make", "Make a user", "Make a user", make, noun=USER.noun, fields=accounts.FIELDS, makes=True),
    Once("user.password", "Give the user a new password", "New password", give_password, noun=USER.noun, grave=True),
)
