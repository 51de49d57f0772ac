"""The types of what `weft.Client` answers: the JSON of docs/reference/http-api.md, as TypedDicts."""

from server.client.answers import *  # noqa: F403
