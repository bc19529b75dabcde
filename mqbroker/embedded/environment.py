"""The environment variables of the broker's processes; variables that the user has set take precedence."""

import os

from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.folder import DataFolder
from mqbroker.embedded.servers.backing import Servers

# Settings for one machine and one user. In a deployment these settings are off unless the operator sets them.
EMBEDDED_DEFAULTS = {
    "MQBROKER_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8,::1/128",
    "MQBROKER_AUTO_CREATE_TOPICS": "true",
}


def common() -> dict[str, str]:
    """Variables of every Python process of the checkout."""
    return dict(os.environ) | {
        "DJANGO_SETTINGS_MODULE": "mqbroker.settings",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "client")]),
        "PYTHONUNBUFFERED": "1",
    }


def embedded(folder: DataFolder, servers: Servers) -> dict[str, str]:
    """Variables of the processes that serve a data folder."""
    kept = {
        "MQBROKER_SECRET_KEY": folder.secret("django"),
        "MQBROKER_SECRETS_KEYS": folder.secret("sealing"),
    }
    return EMBEDDED_DEFAULTS | kept | common() | servers.urls() | {"MQBROKER_DATA_DIR": str(folder.path)}


def of_tests(folder: DataFolder, servers: Servers) -> dict[str, str]:
    """Variables of tests and benchmarks: the private servers, without the caller's own settings."""
    settings = {name: value for name, value in common().items() if not name.startswith("MQBROKER_")}
    # Tests start hundreds of processes, so compiled modules are kept and used again.
    settings.pop("PYTHONDONTWRITEBYTECODE", None)
    return settings | servers.urls() | {"MQBROKER_DATA_DIR": str(folder.path)}
