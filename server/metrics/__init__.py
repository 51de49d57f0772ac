"""Numbers of this process and of its database, in the text format of Prometheus."""
