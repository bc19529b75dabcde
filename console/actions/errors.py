"""The refusals of actions."""

from store.errors import Refusal


class KindNotExist(Refusal):
    """There is no kind of action with this name."""

    code = "not_found"


class TargetsOnly(Refusal):
    """Raised for a kind of action that needs a list of targets, and cannot change all things that match a filter."""

    code = "message_illegal"
