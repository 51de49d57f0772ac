"""The services of an installation: topics of the API, triggers, messages, upkeep."""
