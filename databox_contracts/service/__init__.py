"""The registry over HTTP: an application that any ASGI server runs, and a server of its own."""
