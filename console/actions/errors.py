"""What actions refuse."""

from store.errors import Refusal


class KindNotExist(Refusal):
    """No kind of action has this name."""

    code = "not_found"


class TargetsOnly(Refusal):
    """The kind does nothing to all that match."""

    code = "message_illegal"
