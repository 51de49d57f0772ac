"""`weft dev FILE`: a server with the workflows of one Python file, restarted when the file changes.

`loop` watches the file and begins anew, with the server as a process in which `child` runs; `check` reads the file in a
process of its own, so that no import of an older text remains; `canvas` stores the workflows and finds their pages.
"""
