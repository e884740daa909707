"""The HTTPS client that sends requests to callbacks.

Anybody can name a callback URL. Therefore the client never contacts a private network,
each exchange has one deadline and one size limit, and outcomes are in words of this
module, never in those of an answer. The client follows no redirects, uses no proxy, and
keeps neither cookies nor connections.

This module knows HTTP and TLS. It must not know subscriptions, topics, the store or the
hub's settings.

Sections: faults - connections - the client.
"""

from __future__ import annotations

import errno
import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeAlias, cast

from reviewslib.websub.callback_messages import CallbackRequest, CallbackResponse
from reviewslib.websub.callback_urls import HTTPS_AUTHORITY, is_public

# Head and body of a callback's answer together.
MAX_CALLBACK_BYTES = 64 * 1024


# ---- Faults ----


class CallbackRefused(Exception):
    """The exchange breaks a rule of this module. The text names the rule."""


# This machine lacks descriptors, memory, ports or an interface.
OWN_FAULTS = {
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.ENOBUFS,
    errno.ENETDOWN,
    errno.EADDRNOTAVAIL,
}
# Our network or the callback's is at fault.
UNREACHABLE = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ETIMEDOUT, socket.EAI_AGAIN}

# The outcome of an exception: that of the first class that matches. No outcome quotes
# text of an answer.
FAULTS: dict[type[Exception], str] = {
    TimeoutError: "no complete answer in time",
    ssl.SSLCertVerificationError: "certificate not valid for this host",
    ssl.SSLError: "TLS failed",
    socket.gaierror: "name not resolved",
    UnicodeError: "name not resolved",
    ConnectionRefusedError: "connection refused",
    ConnectionError: "connection closed or reset",
    OSError: "not reachable",
    http.client.HTTPException: "answer is not HTTP",
    ValueError: "answer cannot be read",
    # http.client raises it for the size of a chunk.
    OverflowError: "answer cannot be read",
    RuntimeError: "no thread for the resolver",
}


# ---- Connections: checked addresses only, and one deadline over everything ----

# A host name can have thousands of addresses, which may belong to other people.
MAX_ADDRESSES = 4

# A name server that works answers in far less; one exchange waits so much longer.
OWN_NAME_SECONDS = 5.0

# Two addresses of a root name server. Nothing is ever sent to them.
PROBE_ADDRESSES = (
    (socket.AF_INET, "198.41.0.4"),
    (socket.AF_INET6, "2001:503:ba3e::2:30"),
)

Resolve: TypeAlias = Callable[[str], Sequence[str]]
"""From a host to its addresses."""
Connect: TypeAlias = Callable[[tuple[str, int], float], socket.socket]
"""To an address and a port, within a timeout."""


def has_default_route(
    probe_addresses: Iterable[tuple[int, str]] = PROBE_ADDRESSES,
) -> bool:
    """Whether the kernel knows a route to the internet, by either family."""
    for family, address in probe_addresses:
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, http.client.HTTPS_PORT))
            return True
    return False


class DeadlineSocket(ssl.SSLSocket):
    """A TLS socket with one deadline and one size limit for everything that is read.

    The timeout of a plain socket starts anew with each byte, so slow bytes could occupy
    a worker for hours.
    """

    deadline: float  # time.monotonic(); set before the handshake
    answer_bytes_left = MAX_CALLBACK_BYTES

    def do_handshake(self, block: bool = False) -> None:
        self.settimeout(seconds_until(self.deadline))
        super().do_handshake(block)

    def send(self, *args: Any) -> int:
        self.settimeout(seconds_until(self.deadline))
        return super().send(*args)

    def recv_into(self, *args: Any) -> int:
        self.settimeout(seconds_until(self.deadline))
        count = super().recv_into(*args)
        self.answer_bytes_left -= count
        if self.answer_bytes_left < 0:
            raise CallbackRefused(f"answer is larger than {MAX_CALLBACK_BYTES} bytes")
        return count


def seconds_until(deadline: float) -> float:
    """The time left, which is positive, until a moment of time.monotonic().

    Raises TimeoutError after it.
    """
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


def system_resolve(host: str) -> list[str]:
    """The addresses of a host. Raises OSError or UnicodeError.

    Only the resolver limits how long it takes.
    """
    return [
        str(address[0])
        for *_, address in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    ]


def resolve_in_time(resolve: Resolve, host: str, deadline: float) -> Sequence[str]:
    """The result or the error of `resolve`.

    Raises TimeoutError at the deadline, RuntimeError without a thread. A resolver
    cannot be interrupted, so it runs in a thread, which is abandoned at the deadline.
    The thread ends when the resolver gives up, usually after half a minute, so that a
    worker leaves few of them behind.
    """
    addresses: Future[Sequence[str]] = Future()

    def look_up() -> None:
        try:
            addresses.set_result(resolve(host))
        except Exception as error:
            addresses.set_exception(error)

    threading.Thread(target=look_up, name="hub-resolver", daemon=True).start()
    return addresses.result(seconds_until(deadline))


def addresses_to_try(addresses: Sequence[str]) -> list[str]:
    """The addresses to try, in their order: at most four, two of each family.

    Four of one family where there is no other.
    """
    distinct = list(dict.fromkeys(addresses))
    v4 = [address for address in distinct if ":" not in address]
    v6 = [address for address in distinct if ":" in address]
    limit = MAX_ADDRESSES // 2 if v4 and v6 else MAX_ADDRESSES
    chosen = {*v4[:limit], *v6[:limit]}
    return [address for address in distinct if address in chosen]


def connect_first(
    addresses: Sequence[str], port: int, deadline: float, connect: Connect
) -> socket.socket:
    """A connection to the first address that answers. Raises OSError.

    The addresses share the time that is left.
    """
    fault: OSError = socket.gaierror("no address")
    for tried, address in enumerate(addresses):
        share_seconds = seconds_until(deadline) / (len(addresses) - tried)
        try:
            return connect((address, port), share_seconds)
        except OSError as error:
            # A refusal at an earlier address is an answer.
            if not isinstance(fault, ConnectionError):
                fault = error
    raise fault


# ---- The client ----


def response_of(
    answer: http.client.HTTPResponse, read_body_bytes: int
) -> CallbackResponse:
    """What matters of an answer, of which only the head has been read."""
    body = b""
    if read_body_bytes and 200 <= answer.status < 300:
        body = answer.read(read_body_bytes)
    return CallbackResponse(
        status=answer.status,
        outcome=f"HTTP {answer.status}",
        body=body,
        retry_after=answer.headers.get("Retry-After", ""),
    )


def outcome_of(error: Exception) -> str:
    """Words for an error that FAULTS lists."""
    return next(words for fault, words in FAULTS.items() if isinstance(error, fault))


class CallbackClient:
    """Sends requests to callbacks. Thread-safe."""

    def __init__(
        self,
        user_agent: str,
        ca_file: Path | None,
        *,
        allow_private: bool,
        own_host: str = "localhost",
        resolve: Resolve = system_resolve,
        connect: Connect = socket.create_connection,
        is_online: Callable[[], bool] = has_default_route,
    ):
        """`ca_file` (PEM) is trusted besides the system's certificates.

        `own_host` is a host name that a working name server resolves. Raises OSError if
        the file is unusable.
        """
        self._context = ssl.create_default_context()
        self._context.sslsocket_class = DeadlineSocket
        if ca_file is not None:
            self._context.load_verify_locations(ca_file)
        self._headers = {"User-Agent": user_agent, "Connection": "close"}
        self._allow_private = allow_private
        self._own_host = own_host
        self._resolve = resolve
        self._connect = connect
        self._is_online = is_online

    def send(self, request: CallbackRequest) -> CallbackResponse:
        """Make one exchange.

        A failure is a response without a status, never an exception.
        """
        deadline = time.monotonic() + request.timeout_seconds
        try:
            return self._exchange(request, deadline)
        except CallbackRefused as refusal:
            return CallbackResponse(None, str(refusal))
        except tuple(FAULTS) as error:
            return CallbackResponse(
                None,
                outcome_of(error),
                is_refused=isinstance(error, ConnectionRefusedError),
                own_fault=self._is_own_fault(error),
            )

    def _exchange(self, request: CallbackRequest, deadline: float) -> CallbackResponse:
        """The callback's answer. Raises CallbackRefused, and what FAULTS lists."""
        https = HTTPS_AUTHORITY.match(request.url)
        if not https:
            raise CallbackRefused("not an https URL")
        target = "/" + request.url[https.end() :].removeprefix("/")
        headers = {**self._headers, **request.headers}
        with closing(
            http.client.HTTPSConnection(https[1], context=self._context)
        ) as connection:
            tls = self._open(connection.host, connection.port, deadline)
            connection.sock = tls
            tls.do_handshake()
            connection.request(request.method, target, request.body, headers)
            with connection.getresponse() as answer:
                return response_of(answer, request.read_body_bytes)

    def _is_own_fault(self, error: Exception) -> bool:
        if isinstance(error, RuntimeError):
            return True
        code = getattr(error, "errno", None)
        if type(error) is OSError and code in OWN_FAULTS:
            return True
        if not (isinstance(error, TimeoutError) or code in UNREACHABLE):
            return False
        if not self._is_online():
            return True
        return code == socket.EAI_AGAIN and self._is_own_name_unresolved()

    def _is_own_name_unresolved(self) -> bool:
        """Whether the name server has no answer about `own_host` in time either."""
        deadline = time.monotonic() + OWN_NAME_SECONDS
        try:
            resolve_in_time(self._resolve, self._own_host, deadline)
        except (OSError, UnicodeError) as error:
            return (
                isinstance(error, TimeoutError)
                or getattr(error, "errno", None) == socket.EAI_AGAIN
            )
        return False

    def _open(self, host: str, port: int, deadline: float) -> DeadlineSocket:
        """Resolve the host once, check every address, and connect to one of them.

        The certificate is checked against the name. Every exchange resolves and checks
        anew: a name that changes its address between two exchanges ("DNS rebinding")
        gains nothing.
        """
        # Raises OSError if no descriptor is free; the resolver would report an unknown
        # name instead.
        socket.socket().close()
        addresses = resolve_in_time(self._resolve, host, deadline)
        for address in addresses:
            if not (self._allow_private or is_public(ipaddress.ip_address(address))):
                raise CallbackRefused(f"{address} is not a public address")

        # What wraps it takes over the descriptor.
        with connect_first(
            addresses_to_try(addresses), port, deadline, self._connect
        ) as plain:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            wrapped = self._context.wrap_socket(
                plain, server_hostname=host, do_handshake_on_connect=False
            )
        # The context's sslsocket_class.
        tls = cast(DeadlineSocket, wrapped)
        tls.deadline = deadline
        return tls
