"""The parts of the hub: values, the client for callbacks, the store."""
