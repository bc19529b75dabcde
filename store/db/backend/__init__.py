"""Django's PostgreSQL, with the patience of a request: the engine of the settings. Django looks for `base` here."""
