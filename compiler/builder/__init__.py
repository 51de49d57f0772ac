"""Workflows written in Python: objects that make the document that a canvas would make. Pure: no clock, no IO.

`step` has blocks of any type, `shapes` how they are connected, `triggers`, `actions`, `people` and `control` the block
types by name, `workflow` makes the document, `source` prints the Python of a document (`recover` finds the steps in its
graph, `calls` how each is written, `text` writes it). `import weft` has all the names.
"""
