"""The database engine of the settings: Django's PostgreSQL engine with the time limits of a request.

Django imports `base`.
"""
