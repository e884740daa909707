"""reviewsd's library: everything but the entry modules.

Those are `reviewsd.py`, `hub.py` and `mcp_rpc.py`.

`dataset` reads the data files and searches reviews. `web` renders HTTP responses, and
`export` writes them as files. `websub` has the parts of the hub. `process` runs the
service. `importer` and `annotator` make data files. The library imports no entry
module.
"""

import time

# When the first module was imported.
IMPORTED_AT = time.time()
