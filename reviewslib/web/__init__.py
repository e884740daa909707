"""What is served over HTTP, from representation to path."""
