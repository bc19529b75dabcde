"""The broker, the key and the namespace that the environment names."""

import os

from mqbroker_client.core.requests import Options

VARIABLES = ("MQBROKER_URL", "MQBROKER_API_KEY")
# One that may be left out.
NAMESPACE = "MQBROKER_NAMESPACE"


def from_environment() -> tuple[str, str]:
    """The addresses and the API key of MQBROKER_URL and MQBROKER_API_KEY. Raises ValueError where one is missing."""
    found = given_environment()
    if missing := [name for name in VARIABLES if name not in found]:
        raise ValueError(f"the environment has no {' and no '.join(missing)}: set {' and '.join(VARIABLES)}")
    return found["MQBROKER_URL"], found["MQBROKER_API_KEY"]


def options_of(given: Options) -> Options:
    """The options of a broker, with the namespace of the environment where none is given."""
    return {"namespace": namespace_of_environment(), **given}


def namespace_of_environment() -> str | None:
    """The namespace of MQBROKER_NAMESPACE; None where it is unset or empty."""
    return os.environ.get(NAMESPACE, "").strip() or None


def given_environment() -> dict[str, str]:
    """The values of MQBROKER_URL, MQBROKER_API_KEY and MQBROKER_NAMESPACE that are set and not empty."""
    return {name: os.environ[name] for name in (*VARIABLES, NAMESPACE) if os.environ.get(name, "").strip()}
