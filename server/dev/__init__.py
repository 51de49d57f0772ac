"""`weft dev FILE`: a server with the workflows of one Python file, restarted when the file changes.

`loop` watches the file and begins anew; `check` reads it in a process of its own, so that no import of an older text
remains; `process` is the server, `child` runs in it; `canvas` stores the workflows there and finds their pages.
"""
