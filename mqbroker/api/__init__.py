"""The REST API: views that parse, call one function of the domain and answer."""
