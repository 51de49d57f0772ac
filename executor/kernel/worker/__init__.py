"""One process: claims runs, keeps their leases, and talks with other processes."""
