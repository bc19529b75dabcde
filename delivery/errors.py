"""The refusals of delivery."""

from store.errors import Refusal


class ReceiptExpired(Refusal):
    """The receipt handle is no longer valid: the invisible time is over, or the message was acked
    or delivered again.
    """

    code = "receipt_expired"


class SubscriptionNotExist(Refusal):
    """There is no subscription with this name."""

    code = "not_found"
