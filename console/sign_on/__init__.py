"""Sign-on to the console at an identity provider, by OpenID Connect: a door. Begin to read at `views`."""
