"""Bodies in JSON: the producer compresses long bodies, and the reader of a message decompresses them."""

import base64
import importlib
import zlib
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Literal

from mqbroker_client.core.documents import Document

Method = Literal["zlib", "zstd"]
#: RocketMQ's threshold.
FROM_BYTES = 4096
#: The maximum size of a decompressed body. The broker refuses bodies above its own MAX_MESSAGE_BYTES.
MAX_UNPACKED_BYTES = 64 * 1024 * 1024
# The memory that a zstd frame may ask for: 8 MiB.
_MAX_WINDOW_LOG = 23
# The level for zlib: 0.5 ms for 64 KiB of JSON. RocketMQ's level 5 takes 1.4 ms and saves a sixth more.
_LEVEL = 1


@dataclass(frozen=True, slots=True)
class Compression:
    """How a producer compresses bodies: the option `compression` of a Broker. None: no compression.

    Raises ImportError for zstd if neither Python (from 3.14 on) nor the package backports.zstd provides it.
    """

    #: zlib can be read by every consumer; zstd needs its library at all consumers of the topic.
    method: Method = "zlib"
    #: Shorter bodies are not compressed, nor bodies that compression does not make shorter.
    from_bytes: int = FROM_BYTES
    #: The library's compression level; by default 1 for zlib and 3 for zstd.
    level: int | None = None

    def __post_init__(self) -> None:
        if self.method not in ("zlib", "zstd"):
            raise ValueError(f"there is no compression {self.method!r}: zlib and zstd are known")
        if self.method == "zstd":
            _zstd()

    def packed(self, body: bytes) -> bytes | None:
        """The compressed body; None if it is too short, or would not be shorter in base64."""
        if len(body) < self.from_bytes:
            return None
        if self.method == "zstd":
            packed = bytes(_zstd().compress(body, self.level))
        else:
            packed = zlib.compress(body, _LEVEL if self.level is None else self.level)
        return packed if len(packed) * 4 < len(body) * 3 else None


DEFAULT = Compression()


def body_fields(body: bytes, compression: Compression | None = None) -> dict[str, str]:
    """The JSON fields of a body: a long body compressed, a text as text (readable in logs and consoles), other bytes as
    base64.

    None of these forms changes a byte.
    """
    if compression is not None and (packed := compression.packed(body)) is not None:
        return {"body_base64": base64.b64encode(packed).decode(), "compression": compression.method}
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


def body_of(document: Document) -> bytes:
    """The bytes of a body in JSON, decompressed; empty for a check that came without bodies."""
    if "body" in document:
        return str(document["body"]).encode()
    if document.get("body_omitted"):
        return b""
    body = base64.b64decode(document["body_base64"])
    return unpacked(document["compression"], body) if "compression" in document else body


def unpacked(method: str, packed: bytes) -> bytes:
    """Decompresses a body.

    Raises ValueError for a body that cannot be decompressed or has more than MAX_UNPACKED_BYTES, and for an unknown
    compression; ImportError for zstd if it is missing.
    """
    body, is_whole = _of_zstd(packed) if method == "zstd" else _of_zlib(method, packed)
    if not is_whole:
        raise ValueError(f"the body cannot be unpacked by {method}, or has more than {MAX_UNPACKED_BYTES} bytes")
    return body


def _of_zlib(method: str, packed: bytes) -> tuple[bytes, bool]:
    if method != "zlib":
        raise ValueError(f"the body is compressed by {method}, which this version does not know")
    stream = zlib.decompressobj()
    try:
        return stream.decompress(packed, MAX_UNPACKED_BYTES), stream.eof
    except zlib.error as problem:
        raise ValueError(f"the body cannot be unpacked by zlib: {problem}") from problem


def _of_zstd(packed: bytes) -> tuple[bytes, bool]:
    zstd = _zstd()
    stream = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _MAX_WINDOW_LOG})
    try:
        return bytes(stream.decompress(packed, MAX_UNPACKED_BYTES)), bool(stream.eof)
    except zstd.ZstdError as problem:
        raise ValueError(f"the body cannot be unpacked by zstd: {problem}") from problem


@cache
def _zstd() -> ModuleType:
    """Python's zstd module (from 3.14 on), or its backport."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ImportError("a body is compressed by zstd: pip install 'mqbroker-client[zstd]', or send zlib")
