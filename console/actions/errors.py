"""The refusals of actions."""

from store.errors import Refusal


class KindNotExist(Refusal):
    """No kind of action has this name."""

    code = "not_found"


class TargetsOnly(Refusal):
    """This kind of action needs named targets; it cannot change all that match."""

    code = "message_illegal"
