"""nginx and Caddy with the shipped files in front of real daemons.

Names, ports, paths and certificates of the shipped files are replaced, and directives
that a test names. A client is an address of this machine from which connections come.

Sections: clients - proxies: their commands and files - instances.
"""

import os
import re
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path

import trustme

from lab.services import ROOT, SAMPLE, daemon, free_port
from lab.tools import program
from lab.watching import wait_for

JSON_TYPE = {
    "content_type": "application/json",
    "accept": "application/json, text/event-stream",
}
PUBLIC_URL = "https://reviews.example.com"
SERVER_DOCS = (ROOT / "docs" / "server.md").read_text(encoding="utf-8")
LIMITS_ROW = r"(?m)^\| .* \| (\d+) \| (\d+) \| (\d+) \| twice as many \|$"
# Burst, requests a second, delayed requests: documents, pages, MCP and the hub.
RATE_LIMITS = [tuple(map(int, row)) for row in re.findall(LIMITS_ROW, SERVER_DOCS)]
SECOND = "127.0.0.1:8081"
LOOPBACK = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}
# Status, lower-case headers and body.
Answer = tuple[int, dict[str, str], bytes]


# ---- Clients ----


@dataclass(frozen=True)
class Proxy:
    """A running proxy: port, certificate for clients, directory with log and cache."""

    port: int
    context: ssl.SSLContext
    directory: Path

    def connected(self, source: str, window_bytes: int = 0) -> ssl.SSLSocket:
        """A TLS connection of a client; a small window lets the kernel read little."""
        plain = socket.socket(socket.AF_INET6 if ":" in source else socket.AF_INET)
        if window_bytes:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window_bytes)
        # Head and body of a POST are two writes.
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.settimeout(30)
        try:
            plain.bind((source, 0))
            plain.connect((LOOPBACK[plain.family], self.port))
            return self.context.wrap_socket(plain, server_hostname="localhost")
        except OSError:
            # A socket that nobody closes would be the failure that is reported.
            plain.close()
            raise

    def client(self, source: str = "127.0.0.1") -> "Client":
        """A client, which connects when it has something to ask."""
        return Client(self, source)

    def ask(
        self,
        path: str,
        body: bytes | None = None,
        source: str = "127.0.0.1",
        **headers: str,
    ) -> Answer:
        """The response to one request on a connection of its own."""
        with closing(self.client(source)) as client:
            return client.ask(path, body, **headers)


class Client(HTTPSConnection):
    """A client of a proxy, which keeps its connection."""

    def __init__(self, proxy: Proxy, source: str):
        super().__init__("localhost", proxy.port)
        self._proxy = proxy
        self._source = source

    def connect(self) -> None:
        self.sock = self._proxy.connected(self._source)

    def ask(self, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """The response to one request; a POST if it has a body."""
        method = "GET" if body is None else "POST"
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.request(method, path, body, named)
        answer = self.getresponse()
        received = {name.lower(): value for name, value in answer.headers.items()}
        return answer.status, received, answer.read()


# ---- Proxies: their commands and files ----


def replace_all(text: str, replaced: dict[str, str]) -> str:
    """The text with our names, ports and paths; fails if a shipped one is not there."""
    for shipped, ours in replaced.items():
        assert shipped in text
        text = text.replace(shipped, ours)
    return text


def has_ipv6() -> bool:
    """Whether the network that we are in has the loopback address of IPv6."""
    with (
        suppress(OSError),
        socket.create_server((LOOPBACK[socket.AF_INET6], 0), family=socket.AF_INET6),
    ):
        return True
    return False


def is_open(address: str, port: int) -> bool:
    """Whether somebody listens there."""
    with suppress(OSError), socket.create_connection((address, port), 1):
        return True
    return False


def nginx_command(
    directory: Path, shipped: str, https_port: int, http_port: int
) -> list[str]:
    """The command of nginx with the shipped file and the connections of the README."""
    configuration = directory / "nginx.conf"
    included = nginx_file(directory, shipped, https_port, http_port)
    configuration.write_text(nginx_configuration(directory, included))
    command = [program("nginx"), "-p", str(directory), "-c", str(configuration)]
    tested = subprocess.run(
        [*command, "-t"], capture_output=True, text=True, timeout=60
    )
    assert tested.returncode == 0
    assert "[warn]" not in tested.stderr, tested.stderr
    return command


def nginx_file(directory: Path, shipped: str, https_port: int, http_port: int) -> str:
    """The shipped file with ports and paths of a test."""
    ipv6_line = ""
    if has_ipv6():
        ipv6_line = f"    listen [::1]:{https_port} ssl;\n"
    changes = {
        "/var/cache/nginx-reviewsd": f"{directory}/cache",
        "listen 80;": f"listen 127.0.0.1:{http_port};",
        "    listen [::]:80;\n": "",
        "listen 443 ssl": f"listen 127.0.0.1:{https_port} ssl",
        "    listen [::]:443 ssl;\n": ipv6_line,
        "/etc/letsencrypt/live/reviews.example.com": str(directory),
    }
    return replace_all(shipped, changes)


def nginx_configuration(directory: Path, included: str) -> str:
    """What stands around the shipped file on a server, with the README's connections."""
    lines = ["daemon off;", f"pid {directory}/pid;", "error_log stderr;"]
    lines.append("worker_rlimit_nofile 32768;")
    # Without this line, the workers of root's nginx would run as a user who may not
    # enter the directory.
    if os.geteuid() == 0:
        lines.append("user root;")
    lines += ["events { worker_connections 16384; }", "http { access_log off;"]
    for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"):
        lines.append(f"{kind}_temp_path {directory}/{kind};")
    return "\n".join([*lines, included, "}", ""])


def caddy_command(
    directory: Path, shipped: str, https_port: int, http_port: int
) -> list[str]:
    """The command of Caddy with the shipped file."""
    configuration = directory / "Caddyfile"
    options = ["{", "\tadmin off", f"\thttp_port {http_port}", "\tservers {"]
    site = [
        f"https://localhost:{https_port} {{",
        "\tbind 127.0.0.1",
        f"\ttls {directory}/fullchain.pem {directory}/privkey.pem",
    ]
    changes = {
        "{\n\tservers {": "\n".join(options),
        "reviews.example.com {": "\n".join(site),
    }
    configuration.write_text(replace_all(shipped, changes))
    run = [program("caddy"), "run", "--adapter", "caddyfile"]
    return [*run, "--config", str(configuration)]


# By name of the proxy: its file in `deploy/` and its command.
PROXIES: dict[str, tuple[str, Callable[[Path, str, int, int], list[str]]]] = {
    "nginx": ("nginx.conf", nginx_command),
    "caddy": ("Caddyfile", caddy_command),
}


def with_second_instance(text: str, name: str) -> str:
    """The file of a proxy with a second instance, by the `sed` of docs/server.md."""
    script = re.search(rf"(?m)^sudo sed -i -E '(.*)' /etc/{name}/", SERVER_DOCS)
    assert script
    sed = subprocess.run(
        ["sed", "-E", script[1]], input=text, capture_output=True, text=True, check=True
    )
    assert sed.stdout.count(SECOND) == 2
    return sed.stdout


@contextmanager
def running_proxy(
    directory: Path, name: str, ports: list[int], checkout: Path = ROOT, **changed: str
) -> Iterator[Proxy]:
    """The proxy with the file of a checkout, in front of one or two instances.

    Every item of `changed` gives the directive of that name another value.
    """
    context = trusted_context(directory)
    file, command_of = PROXIES[name]
    text = (checkout / "deploy" / file).read_text(encoding="utf-8")
    for directive, value in changed.items():
        text, times = re.subn(rf"(?m)^(\s+{directive}) [^;\n]*", rf"\1 {value}", text)
        assert times == 1
    https_port = free_port()
    in_front = with_instances(text, name, ports)
    command = command_of(directory, in_front, https_port, free_port())
    with process_of(command, directory) as process:

        def listens() -> bool:
            assert process.poll() is None, (directory / "log").read_text()
            return all(is_open(address, https_port) for address in addresses_of(name))

        wait_for("proxy", listens)
        yield Proxy(https_port, context, directory)


def trusted_context(directory: Path) -> ssl.SSLContext:
    """What clients trust: the certificate that is written for the proxy."""
    authority = trustme.CA()
    context = ssl.create_default_context()
    authority.configure_trust(context)
    certificate = authority.issue_cert("localhost")
    certificate.cert_chain_pems[0].write_to_path(directory / "fullchain.pem")
    certificate.private_key_pem.write_to_path(directory / "privkey.pem")
    return context


def with_instances(text: str, name: str, ports: list[int]) -> str:
    """The file of a proxy in front of one or two instances on these ports."""
    if len(ports) == 2:
        text = with_second_instance(text, name)
    behind = {}
    for number, port in enumerate(ports):
        behind[f"127.0.0.1:{8080 + number}"] = f"127.0.0.1:{port}"
    return replace_all(text, behind)


def addresses_of(name: str) -> list[str]:
    """The addresses at which a proxy listens; nginx opens one after the other."""
    addresses = [LOOPBACK[socket.AF_INET]]
    if name == "nginx" and has_ipv6():
        addresses.append(LOOPBACK[socket.AF_INET6])
    return addresses


@contextmanager
def process_of(
    command: list[str], directory: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that writes to the file `log`, and ends with the block."""
    environment = os.environ | {"HOME": str(directory)}
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log, env=environment)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


# ---- Instances ----


class Instance(ExitStack):
    """A daemon behind a proxy, on the same port after every start."""

    def __init__(self, *arguments: str):
        super().__init__()
        self.port = free_port()
        self._arguments = arguments

    def start(self) -> None:
        self.enter_context(
            daemon(*self._arguments, data=SAMPLE, base_url=PUBLIC_URL, port=self.port)
        )

    def stop(self) -> None:
        self.close()
