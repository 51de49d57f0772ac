"""The way of blocks, notifications and callbacks to other servers: public addresses only, bounded in time and size."""
