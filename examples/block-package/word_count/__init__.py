"""A block type for weft."""
