"""Messages to people and programs: that a run waits for them, and that something went wrong."""
