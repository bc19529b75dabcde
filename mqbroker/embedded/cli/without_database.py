"""The settings without a database: models are compared with migrations, which needs none."""

from mqbroker.settings import *  # noqa: F403  # all of them but one

DATABASES = {}
