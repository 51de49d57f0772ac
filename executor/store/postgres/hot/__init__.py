"""What is written thousands of times a second: one statement for all items of a kind that a group has."""
