"""The calls of the HTTP API, described once: a file for each topic, a method for each route."""
