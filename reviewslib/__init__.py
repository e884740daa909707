"""reviewsd's library: everything but its three doors, `reviewsd.py`, `hub.py` and `mcp_rpc.py`.

`dataset` makes files into reviews that can be searched, `web` makes these into answers, `websub` holds what
the hub is made of, `process` runs the service, `importer` makes exports into data files. Nothing here imports
a door.
"""
