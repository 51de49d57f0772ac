"""The journal of a run: how an event lies in a row (`codec`), reading it (`reader`), what it means (`projection`)."""
