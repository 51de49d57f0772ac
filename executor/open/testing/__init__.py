"""For tests of workflows and blocks by their authors: `weft.testing`. Real engines on real files; the time is set by
hand, block types can be scripted, and processes are killed at every commit.
"""
