"""The settings without a database: models are held against their migrations, and nobody has to be asked for that."""

from mqbroker.settings import *  # noqa: F403  # all of them but one

DATABASES = {}
