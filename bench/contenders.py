"""What the bench compares: the daemon of a checkout, its peers, and nginx.

A `Lab` starts each of them anew, in directories of one round.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import make_data

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from lab.services import HOST, ROOT, SAMPLE, Service, daemon_command, free_port
from lab.tools import program

BENCH = ROOT / "bench"
# In place of a number of generated reviews: the sample.
SAMPLE_SIZE = 0
# Pinned, so that the ratios of two years can be compared.
PEERS_REQUIREMENTS = ("fastapi==0.165.0", "uvicorn[standard]==0.54.0", "mcp==2.3.0")
# One process, since the daemon has one event loop. What costs nginx time and the daemon
# has not (the access log, reopening files) is off; the header is one that the daemon
# sends, too.
NGINX_CONFIGURATION = """
daemon off; master_process off; pid nginx.pid; error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
    access_log off; sendfile on; keepalive_requests 100000000;
    open_file_cache max=100;
    client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t;
    uwsgi_temp_path t; scgi_temp_path t;
    server {{
        listen {host}:{port};
        root {files};
        add_header Cache-Control "public, max-age=60";
    }}
}}
"""


class Lab(NamedTuple):
    """A checkout of this repository, and directories for one round."""

    checkout: Path
    scratch: Path  # of this round alone
    cache: Path  # outlives the run
    seconds: int  # of a run of wrk

    def data(self, size: int) -> Path:
        """Generated data of `size` reviews, or a copied sample; rows may change it."""
        directory = self.scratch / f"data-{size}"
        if size == SAMPLE_SIZE:
            shutil.copytree(SAMPLE, directory)
        else:
            make_data.write(size, directory)
        return directory

    def daemon(self, data: Path, *flags: str) -> Service:
        """The daemon, which reloads only after SIGHUP."""
        port = free_port()
        usual = [f"--port={port}", f"--data={data}", "--reload-interval=86400"]
        usual.append(f"--state-dir={self.scratch / f'state-{port}'}")
        command = daemon_command(*usual, *flags, checkout=self.checkout)
        return Service(command, port, name="reviewsd")

    def peer(self, application: str, data: Path) -> Service:
        """An application of peers.py under one worker of uvicorn."""
        port = free_port()
        command = [str(self._peers_python()), "-m", "uvicorn"]
        command += ["--app-dir", str(BENCH), f"peers:{application}"]
        command += [f"--port={port}", "--no-access-log"]
        # The fastest that uvicorn has.
        command += ["--loop=uvloop", "--http=httptools"]
        return Service(command, port, name=application, REVIEWS_DATA=str(data))

    def _peers_python(self) -> Path:
        """Python with the peers' packages, in an environment made at first use."""
        environment = self.cache / "venv-peers"
        python = environment / "bin" / "python"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", environment], check=True)
            pip = [python, "-m", "pip", "install", "--quiet"]
            subprocess.run([*pip, *PEERS_REQUIREMENTS], check=True)
        return python

    def nginx(self, files: Path) -> Service:
        """One process of nginx, which serves the directory `files`."""
        port = free_port()
        path = self.scratch / "nginx.conf"
        path.write_text(NGINX_CONFIGURATION.format(host=HOST, port=port, files=files))
        command = [program("nginx"), "-p", str(self.scratch), "-c", str(path)]
        return Service(command, port, name="nginx")
