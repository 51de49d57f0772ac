"""Workflows written in Python: objects that make the document that a canvas would make. Pure: no clock, no IO.

`step` has blocks of any type and how they are connected, `blocks` the block types by name, `workflow` makes the
document, `source` prints the Python of a document (`recover` finds the calls that make it). `weft` has all names.
"""
