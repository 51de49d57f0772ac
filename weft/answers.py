"""The types of the answers of `weft.Client`: the JSON of docs/reference/http-api.md, as TypedDicts."""

from server.client.answers import *  # noqa: F403
