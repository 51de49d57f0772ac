"""`weft demo --fleet`: a PostgreSQL of its own, servers, workers, runs without end, and a page where
each of them can be killed. What the page counts is asked from the servers, as a client would."""
