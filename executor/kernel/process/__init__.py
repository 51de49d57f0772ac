"""Small tools of a process: tasks, threads, clocks, log lines that repeat."""
