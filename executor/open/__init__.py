"""Opens an engine: for a server, inside a program, in tests."""
