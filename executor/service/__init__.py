"""What an installation offers over the kernel: topics of the API, triggers, messages, upkeep."""
