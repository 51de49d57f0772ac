"""What happens when the process, the disk or the machine fails at a chosen point of a fixed scenario."""
