"""The refusals of delivery."""

from store.errors import Refusal


class ReceiptExpired(Refusal):
    """The handle proves no delivery: the invisible time is over, or the message was acked or handed out again."""

    code = "receipt_expired"


class SubscriptionNotExist(Refusal):
    """No subscription has this name."""

    code = "not_found"
