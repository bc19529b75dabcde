"""Another clock for a process, by libfaketime: only the time of day, as when a clock was set wrong."""

from pathlib import Path

# Of Debian's package libfaketime, which .ci/run installs.
LIBRARIES = "usr/lib/*/faketime/libfaketime.so.1"


def library() -> str | None:
    """The path of libfaketime, where it is installed."""
    return next(map(str, sorted(Path("/").glob(LIBRARIES))), None)


def environment(offset: str) -> dict[str, str]:
    """What a process is started with whose clock is off, as by `+2h`."""
    found = library()
    assert found is not None
    return {"LD_PRELOAD": found, "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
