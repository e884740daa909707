"""The export: the same site as files, for owners without a server."""
