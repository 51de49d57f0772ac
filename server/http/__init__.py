"""The HTTP side of the server: routes, bodies, errors, authorization, rates, streams and OpenAPI."""
