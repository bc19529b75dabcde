"""The database engine of the settings: Django's PostgreSQL with the patience of a request. Django imports `base`."""
