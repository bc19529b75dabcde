"""The settings of a later release: it has one migration more."""

from mqbroker.settings import *  # noqa: F403  # settings of Django are names of a module
from mqbroker.settings import INSTALLED_APPS as EARLIER

INSTALLED_APPS = [*EARLIER, "tests.chaos.later"]
