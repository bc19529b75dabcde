"""What the broker's processes find in their environment; what the user has set always wins."""

import os

from embedded.commands import ROOT
from embedded.folder import DataFolder
from embedded.servers import Servers

# One machine, one user: what production forbids by default is wanted here.
EMBEDDED_DEFAULTS = {
    "MQBROKER_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8,::1/128",
    "MQBROKER_AUTO_CREATE_TOPICS": "true",
}


def common() -> dict[str, str]:
    """For every Python process of the checkout."""
    return dict(os.environ) | {
        "DJANGO_SETTINGS_MODULE": "mqbroker.settings",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "client")]),
        "PYTHONUNBUFFERED": "1",
    }


def embedded(folder: DataFolder, servers: Servers) -> dict[str, str]:
    """For the processes that serve a data folder."""
    kept = {"MQBROKER_SECRET_KEY": folder.secret("django")}
    return EMBEDDED_DEFAULTS | kept | common() | servers.urls() | {"MQBROKER_DATA_DIR": str(folder.path)}


def of_tests(folder: DataFolder, servers: Servers) -> dict[str, str]:
    """For tests and benchmarks: private servers, and none of the caller's own settings."""
    settings = {name: value for name, value in common().items() if not name.startswith("MQBROKER_")}
    return settings | servers.urls() | {"MQBROKER_DATA_DIR": str(folder.path)}
