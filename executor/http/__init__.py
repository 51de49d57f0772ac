"""How blocks, notifications and callbacks reach other servers: public addresses only, bounded in time and size."""
