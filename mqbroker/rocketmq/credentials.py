"""Access over RocketMQ's protocol: clients sign each call with an access key and an access secret.

The broker stores only digests of API keys, so a client must use the API key as both. The signature is over the header
`x-mq-date-time` as text: each client writes the time in its own form, so the broker does not parse it.
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
# The most valid signatures that are cached; invalid signatures are not cached.
MAX_REMEMBERED = 1024
# The maximum length of both headers together in characters; clients' headers have about 200. Limited because a caller
# without a valid key can sign, too.
MAX_HEADERS = 1024
# The maximum number of keys being looked up at once. Keys that call often are cached.
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
    """The caller of a call, from its headers AUTHORIZATION and DATE_TIME.

    Raises Unauthenticated for missing credentials, a signature made with another secret, or a key that is unknown,
    revoked or expired; SystemBusy while too many keys are being looked up.
    """
    if len(authorization) + len(date_time) > MAX_HEADERS:
        raise Unauthenticated(NO_CREDENTIALS)
    key = signing_key(authorization, date_time)
    bearer = b"Bearer " + key.encode()
    return keys.known(bearer) or await _looked_up(bearer, keys)


class LookUps:
    """The calls of this process that wait for the look-up of their key."""

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


# Signatures are cached, because the time in a signature has whole seconds: most calls of a busy client have the same
# signature.
@lru_cache(MAX_REMEMBERED)
def signing_key(authorization: str, date_time: str) -> str:
    """The API key with which a call is signed. Raises Unauthenticated."""
    algorithm, _, given = authorization.partition(" ")
    fields: dict[str, str] = dict(FIELD.findall(given))
    # RocketMQ allows a region and a service after the access key.
    key = fields.get("Credential", "").partition("/")[0]
    if algorithm != ALGORITHM or not key:
        raise Unauthenticated(NO_CREDENTIALS)
    if not key.isascii():
        raise Unauthenticated(KEY_UNKNOWN)
    signed = hmac.new(key.encode(), date_time.encode(), hashlib.sha1).hexdigest()
    if not hmac.compare_digest(signed.encode(), fields.get("Signature", "").lower().encode()):
        raise Unauthenticated(WRONG_SIGNATURE)
    return key
