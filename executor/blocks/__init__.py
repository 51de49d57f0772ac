"""What blocks can do: their types, and the connections to the world outside."""
