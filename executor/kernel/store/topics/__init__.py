"""The statements and functions of the store, a file for each topic, for every database.

Values are parameters of a statement only. A constant that lists columns (`RUN`, `WAIT`, ...) has them in the order of
the fields of its struct, so that a row becomes a struct by position. A function that writes has a transaction as its
first parameter, a function that reads the readers.

A change is written like this, so that any number of processes may make changes at once:

 1. Compare and set. The condition of the statement that makes a change has all that the change depends on, and the
    number of rows that it changed shows whether it still held. What was read before only decides what to try.
 2. A key that comes again: the insert does nothing when there is a row (`ON CONFLICT DO NOTHING`), and then the first
    row is selected. A repeated key is never an error.
 3. Where several rows change together, they are taken in one order, by writing them: the run's row (of several runs in
    the order of their ids; a parent's append makes children after its own), then the run's waits, its inbox, its
    signals, then its family. A workflow's active version comes first, before its schedules and webhooks: a transaction
    that begins a run of it keeps it from being deleted, and shares it with all others that do. A schedule's and a
    webhook's row comes before the run it starts, what is deleted before the rows that belong to it.
 4. After a row was taken, what depends on it is read by a statement of its own: it sees what others have committed
    until then.
"""
