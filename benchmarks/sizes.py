"""The sizes of the durable workloads, the same for weft, its floor and other systems. Runs are short, as most are."""

CHAIN = 200  # W1: steps in sequence
FAN = 200  # W2: parallel steps, between a source and a join
ITERATIONS, BODY = 200, 2  # W3: a loop
RUNS, RUN_STEPS = 100, 10  # W4: concurrent runs of a chain
PAUSES = 10  # W5: answers in one process, each to a run of its own
PAUSE_S = 0.02  # before each answer, and before each short run
