"""The block types, one file each."""
