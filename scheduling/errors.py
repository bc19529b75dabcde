"""The refusals of scheduling."""

from store.errors import Refusal


class AlreadyDelivered(Refusal):
    """The delayed message was delivered before it was recalled."""

    code = "already_delivered"
