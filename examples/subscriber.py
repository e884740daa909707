"""A complete WebSub subscriber that prints new reviews.

Usage: python subscriber.py TOPIC CALLBACK CERTIFICATE

TOPIC        a JSON feed, for example https://reviews.example/api/feed.json
CALLBACK     the https:// URL where the hub reaches this program, which listens on
             that port; a random part is added to its path
CERTIFICATE  a PEM file with the private key and the certificate chain for the
             callback's host

Ctrl-C unsubscribes and ends the program.
"""

import hmac
import json
import queue
import re
import secrets
import signal
import ssl
import sys
import threading
import time
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import urlopen

if len(sys.argv) != 4:
    sys.exit(__doc__)
TOPIC, CALLBACK, CERTIFICATE = sys.argv[1:]
# Anybody may send forms with a callback that they know: nobody can guess this one.
CALLBACK = f"{CALLBACK.rstrip('/')}/{secrets.token_urlsafe()}"
SECRET = secrets.token_hex(32)
# For a verification, and before the next request unless Retry-After says otherwise.
WAIT_SECONDS = 60.0

# The mode of our request until the hub has verified it. All other verifications are
# refused.
expected = ""
# Granted leases, in seconds.
confirmed: queue.SimpleQueue[int] = queue.SimpleQueue()


class Callback(BaseHTTPRequestHandler):
    # Ends connections on which nothing comes.
    timeout = 30

    def do_GET(self) -> None:
        """Answer a verification of our request, or a notice of the subscription's end.

        The notice has hub.mode=denied.
        """
        global expected
        url = urlsplit(self.path)
        parameters = {name: values[0] for name, values in parse_qs(url.query).items()}
        mode = parameters.get("hub.mode")
        is_our_path = url.path == urlsplit(CALLBACK).path
        is_ours = is_our_path and parameters.get("hub.topic") == links["self"]
        if is_ours and mode == expected:
            expected = ""
            self.answer(200, parameters.get("hub.challenge", ""))
            confirmed.put(int(parameters.get("hub.lease_seconds", "0")))
            print(mode, flush=True)
        elif is_ours and mode == "denied":
            self.answer(200)
            print(mode, parameters.get("hub.reason", ""), flush=True)
        else:
            self.answer(404)

    def do_POST(self) -> None:
        """Receive the full content of the topic after a change."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if urlsplit(self.path).path != urlsplit(CALLBACK).path:
            # A subscription of an earlier run that was killed: 410 ends it.
            self.answer(410)
            return
        if not is_genuine(body, self.headers.get("X-Hub-Signature", "")):
            self.answer(403)
            return
        # At once: the hub has a deadline.
        self.answer(204)
        for item in json.loads(body)["items"]:
            if items.get(item["id"]) != item:
                items[item["id"]] = item
                print("new or changed:", item["id"], item["content_text"], flush=True)

    def answer(self, status: int, text: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Print no line for a request."""


def is_genuine(body: bytes, signature: str) -> bool:
    """Whether somebody who knows the secret has signed the content."""
    expected_signature = f"sha256={hmac.digest(SECRET.encode(), body, 'sha256').hex()}"
    return hmac.compare_digest(expected_signature.encode(), signature.encode())


def seconds_after(refusal: HTTPError) -> float:
    """The seconds until the next request; ends the program if none can help."""
    # A form that is wrong stays wrong.
    if refusal.code < 500 and refusal.code != 429:
        sys.exit(1)
    wait = refusal.headers.get("Retry-After", "")
    return int(wait) if wait.isdecimal() else WAIT_SECONDS


def request(mode: str) -> float:
    """Send a request to the hub and wait for its verification.

    Returns the seconds until the next request.
    """
    global expected
    form = {
        "hub.mode": mode,
        "hub.topic": links["self"],
        "hub.callback": CALLBACK,
        "hub.secret": SECRET,
    }
    # Late verifications of an earlier request.
    while not confirmed.empty():
        confirmed.get()
    expected = mode
    try:
        with urlopen(links["hub"], urlencode(form).encode(), timeout=30) as accepted:
            print(accepted.status, accepted.read().decode().strip(), flush=True)
        # The second half of the lease leaves time for retries.
        return confirmed.get(timeout=WAIT_SECONDS) / 2
    except HTTPError as refusal:
        print(refusal.code, refusal.read().decode().strip(), flush=True)
        return seconds_after(refusal)
    except (OSError, HTTPException) as fault:
        print("the hub cannot be reached:", fault, flush=True)
    except queue.Empty:
        print("the hub has sent no verification in time", flush=True)
    return WAIT_SECONDS


try:
    with urlopen(TOPIC, timeout=30) as feed:
        items = {item["id"]: item for item in json.load(feed)["items"]}
        link_field = feed.headers["Link"]
except OSError as fault:
    sys.exit(f"{TOPIC}: {fault}")
# The URLs of the hub and of the topic, by "hub" and "self".
links = {
    relation: url
    for url, relation in re.findall('<([^>]*)>; rel="(hub|self)"', link_field)
}
# Background jobs of a shell ignore this signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
tls.load_cert_chain(CERTIFICATE)
server = ThreadingHTTPServer(("", urlsplit(CALLBACK).port or 443), Callback)
# The handshake is made by the thread of a connection: a slow one stops nobody else.
server.socket = tls.wrap_socket(
    server.socket, server_side=True, do_handshake_on_connect=False
)
threading.Thread(target=server.serve_forever, daemon=True).start()
try:
    while True:
        time.sleep(request("subscribe"))
except KeyboardInterrupt:
    request("unsubscribe")
