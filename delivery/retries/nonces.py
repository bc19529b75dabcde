"""Nonces: what makes a delivery one of its own, and whether it comes again without a wait when its time is over."""

import secrets

# A bit of the nonce, so that the receipts, the table that is written most, have no column for it.
AT_ONCE = 1 << 62


def new_nonce(*, again_at_once: bool) -> int:
    """The nonce of a new delivery, which no consumer guesses.

    `again_at_once`: once its invisible time is over its message is offered again without the retry policy's delay.
    """
    return secrets.randbits(62) | (AT_ONCE if again_at_once else 0)


def delay_of(nonce: int) -> float | None:
    """The wait of the retry of a delivery whose time is over, in seconds; None: by the group's retry policy."""
    return 0.0 if nonce & AT_ONCE else None
