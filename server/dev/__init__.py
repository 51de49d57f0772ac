"""`weft dev FILE`: a server with the workflows of one Python file, again with each change of it.

`loop` watches the file and begins anew; `check` reads it in a process of its own, so that no import of an older text is
left; `process` is the server, `child` what runs in it; `canvas` stores the workflows there and finds their pages.
"""
