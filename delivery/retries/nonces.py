"""Nonces: the secret number of each delivery, with a bit that asks for a retry without delay when its time is over."""

import secrets

# Bits of the nonce, so that the tables of deliveries, which are written most often, need no column.
AT_ONCE = 1 << 62
# Marks a delivery that was handed out in a bundle. Nonces of earlier versions of the broker have this bit by chance.
BUNDLED = 1 << 61


def new_nonce(*, again_at_once: bool) -> int:
    """The random nonce of a new delivery, which a consumer cannot guess.

    `again_at_once`: when its invisible time is over, the message is offered again without the retry policy's delay.
    """
    return secrets.randbits(61) | (AT_ONCE if again_at_once else 0)


def delay_of(nonce: int) -> float | None:
    """The delay in seconds of the retry when the invisible time is over; None: by the group's retry policy."""
    return 0.0 if nonce & AT_ONCE else None
