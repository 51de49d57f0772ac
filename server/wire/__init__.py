"""The shapes that cross HTTP, one module a topic: request bodies and response bodies. Times are Unix milliseconds."""
