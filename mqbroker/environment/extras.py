"""Extras: packages that only a part of the broker needs, by the name under which pip installs them."""

import importlib.util

# The modules that show whether an extra's packages are installed.
MODULES = {"rocketmq": ("grpc", "google.protobuf"), "oidc": ("mozilla_django_oidc",)}


def missing(extra: str) -> str | None:
    """A sentence that says which module of an extra is missing and how to install it; None if none is missing."""
    absent = (name for name in MODULES[extra] if not _is_there(name))
    return next((f"The package {name} is not installed: run pip install 'mqbroker[{extra}]'." for name in absent), None)


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the parent package of the module is missing
        return False
