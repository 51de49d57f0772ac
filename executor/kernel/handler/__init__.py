"""A block as the kernel sees it: its input, its outcomes, and the services that it may use."""
