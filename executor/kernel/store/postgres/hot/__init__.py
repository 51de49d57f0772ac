"""The writes that come thousands of times a second: one statement for all items of a kind in a group."""
