"""reviewsd's library: everything but its three doors, `reviewsd.py`, `hub.py` and `mcp_rpc.py`.

`dataset` reads the data files and searches reviews. `web` renders what HTTP answers. `websub` holds the parts
of the hub. `process` runs the service. `importer` turns exports into data files. Nothing here imports a door.
"""
