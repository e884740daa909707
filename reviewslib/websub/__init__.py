"""What the hub is made of: values, the client to callbacks, the store."""
