"""`weft demo --fleet`: its own PostgreSQL, servers, workers, an endless load of runs, and a page where each process can
be killed. The page's counts come from the servers, as for any client."""
