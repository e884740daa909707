"""How the service runs: its settings, its log, its server."""
