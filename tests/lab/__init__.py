"""What tests and the bench share: ways to start the service, peers, data, and fakes."""
