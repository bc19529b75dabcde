"""The refusals of actions."""

from store.errors import Refusal


class KindNotExist(Refusal):
    """There is no kind of action with this name."""

    code = "not_found"


class TargetsOnly(Refusal):
    """This kind of action needs a list of targets; it cannot change all that match a filter."""

    code = "message_illegal"
