"""Pages made on the server: behind resume links, for signing in, and where the editor was not built."""
