"""Parts of `mqbroker.settings`: how environment variables are read, Django's settings, and groups of the broker's
settings.
"""
