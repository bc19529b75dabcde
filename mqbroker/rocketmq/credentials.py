"""Access over RocketMQ's protocol: a signature that is made with an API key, which is the access key, too.

The broker keeps digests of keys only, so a client has its key both as access key and as access secret. The signature is
of the header `x-mq-date-time` as it was sent: each client writes that time in a way of its own, so it is not read.
"""

import hashlib
import hmac
import re
from functools import lru_cache

from access.callers import Caller
from mqbroker.rights import KEY_UNKNOWN, KeyRing
from store.errors import SystemBusy, Unauthenticated
from store.process import runtime

AUTHORIZATION = "authorization"
DATE_TIME = "x-mq-date-time"
ALGORITHM = "MQv2-HMAC-SHA1"
# Signatures that were found right; one that was not is no result.
MAX_REMEMBERED = 1024
# Characters of both headers: those of clients have some 200. A caller without a key of the broker can sign, too.
MAX_HEADERS = 1024
# Keys that are looked up at a time. One that calls again and again is not looked up by its calls.
MAX_LOOK_UPS = 256
FIELD = re.compile(r"(\w+)=([^,\s]*)")
NO_CREDENTIALS = (
    "No credentials: give the client an API key of the broker, both as its access key and as its access secret."
)
WRONG_SIGNATURE = (
    "The signature was not made with the access key: give the client the same API key as access key and as "
    "access secret."
)


async def caller_of(authorization: str, date_time: str, keys: KeyRing) -> Caller:
    """The caller of a call, by its headers AUTHORIZATION and DATE_TIME.

    Raises Unauthenticated without credentials, for a signature made with another secret, and for a key that is unknown,
    revoked or expired; SystemBusy while too many keys are looked up.
    """
    if len(authorization) + len(date_time) > MAX_HEADERS:
        raise Unauthenticated(NO_CREDENTIALS)
    key = signing_key(authorization, date_time)
    bearer = b"Bearer " + key.encode()
    return keys.known(bearer) or await _looked_up(bearer, keys)


class LookUps:
    """The calls of this process that wait for their key to be looked up."""

    def __init__(self) -> None:
        self.count = 0


async def _looked_up(bearer: bytes, keys: KeyRing) -> Caller:
    look_ups = runtime.control(LookUps)
    if look_ups.count >= MAX_LOOK_UPS:
        raise SystemBusy("Too many API keys are being looked up at once: nothing was stored, try again in a second.")
    look_ups.count += 1
    try:
        return await keys.caller(bearer)
    finally:
        look_ups.count -= 1


# Clients sign by the second: of a busy one most calls bear the same signature.
@lru_cache(MAX_REMEMBERED)
def signing_key(authorization: str, date_time: str) -> str:
    """The key that a call is signed with. Raises Unauthenticated."""
    algorithm, _, given = authorization.partition(" ")
    fields: dict[str, str] = dict(FIELD.findall(given))
    # RocketMQ allows a region and a service behind the access key.
    key = fields.get("Credential", "").partition("/")[0]
    if algorithm != ALGORITHM or not key:
        raise Unauthenticated(NO_CREDENTIALS)
    if not key.isascii():
        raise Unauthenticated(KEY_UNKNOWN)
    signed = hmac.new(key.encode(), date_time.encode(), hashlib.sha1).hexdigest()
    if not hmac.compare_digest(signed.encode(), fields.get("Signature", "").lower().encode()):
        raise Unauthenticated(WRONG_SIGNATURE)
    return key
