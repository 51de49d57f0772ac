"""The whole runtime in one seeded world: real engines, real SQL, no threads, no real time.

    loop.py     an event loop in virtual time that runs any ready callback next; processes that freeze and die
    disk.py     one SQLite database in memory, and a store on it whose commits and answers come when the seed says
    script.py   block types that do what the table of a random workflow says, and the documents made of them
    steps.py    handlers that work in durable steps, and what must be true of each step
    clients.py  who uses it: submits, answers, signals, hastens, cancels and follows, repeatedly and too late
    ledger.py   looks at the database after each commit and says what must not have happened
    verdict.py  what must be true at the end: the reference model, the invariants, what clients were told
    server.py   a process with an engine in it, which dies, stops and starts again; the wall clock they share
    sealed.py   nothing random from outside, small bounds, an ear for the log
    world.py    all of it together, what goes wrong when, and that every run ends

`python -m tests.simulation.world --seed N` repeats a seed; `mutants.py` plants bugs, each of which must be found.
"""
