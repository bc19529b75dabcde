"""Reads the broker's address, the API key and the namespace from the environment."""

import os

from mqbroker_client.core.requests import Options

VARIABLES = ("MQBROKER_URL", "MQBROKER_API_KEY")
# This variable is optional.
NAMESPACE = "MQBROKER_NAMESPACE"


def from_environment() -> tuple[str, str]:
    """The addresses and the API key from MQBROKER_URL and MQBROKER_API_KEY.

    Raises ValueError if a variable is missing.
    """
    found = given_environment()
    if missing := [name for name in VARIABLES if name not in found]:
        raise ValueError(f"the environment has no {' and no '.join(missing)}: set {' and '.join(VARIABLES)}")
    return found["MQBROKER_URL"], found["MQBROKER_API_KEY"]


def options_of(given: Options) -> Options:
    """The options of a broker; the namespace comes from the environment if it is not given."""
    return {"namespace": namespace_of_environment(), **given}


def namespace_of_environment() -> str | None:
    """The namespace from MQBROKER_NAMESPACE; None if it is unset or empty."""
    return os.environ.get(NAMESPACE, "").strip() or None


def given_environment() -> dict[str, str]:
    """The values of MQBROKER_URL, MQBROKER_API_KEY and MQBROKER_NAMESPACE that are set and not empty."""
    return {name: os.environ[name] for name in (*VARIABLES, NAMESPACE) if os.environ.get(name, "").strip()}
