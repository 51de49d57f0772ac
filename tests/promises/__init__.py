"""What the README and the documentation promise at the edges, a module for each subject."""
