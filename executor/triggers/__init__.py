"""What starts runs without a person: schedules and webhooks."""
