"""The settings of a later release: it has one migration more."""

from mqbroker.environment.framework import INSTALLED_APPS as EARLIER
from mqbroker.settings import *  # noqa: F403  # settings of Django are names of a module

INSTALLED_APPS = [*EARLIER, "tests.chaos.later"]
