"""The abilities of blocks: their types, and the connections to the world outside."""
