"""What a block is to the kernel: what a handler receives and returns, and the services it may use."""
