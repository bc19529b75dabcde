"""The settings without a database: comparing models with migrations needs none."""

from mqbroker.settings import *  # noqa: F403  # all settings but one

DATABASES = {}
