"""HTTP/1.1: connections, one request and its answer, and the call of an ASGI application."""
