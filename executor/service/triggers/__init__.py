"""Schedules and webhooks, which start runs without a person."""
