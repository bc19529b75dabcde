"""What delivery refuses."""

from store.errors import Refusal


class ReceiptExpired(Refusal):
    """The delivery's invisible time is over, or it was acked before: the handle proves nothing any more."""

    code = "receipt_expired"
