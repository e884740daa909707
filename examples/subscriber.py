"""A complete WebSub subscriber that prints new reviews: python subscriber.py TOPIC CALLBACK CERTIFICATE

TOPIC        a JSON feed, for example https://reviews.example/api/feed.json
CALLBACK     the https:// URL of this program as the hub sees it; it listens on that port
CERTIFICATE  a PEM file with the private key and the certificate chain for the callback's host
"""

import hmac
import json
import queue
import re
import secrets
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import urlopen

TOPIC, CALLBACK, CERTIFICATE = sys.argv[1:]
SECRET = secrets.token_hex(32)
leases: queue.SimpleQueue[int] = queue.SimpleQueue()  # in seconds, as granted


class Callback(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """The hub asks whether we mean it. Other than that it may say goodbye: hub.mode=denied."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        print(asked.get("hub.mode"), asked.get("hub.reason", ""), flush=True)
        agreed = (asked.get("hub.mode"), asked.get("hub.topic")) == ("subscribe", links["self"])
        self.answer(200 if agreed else 404, asked.get("hub.challenge", "") if agreed else "")
        if agreed:
            leases.put(int(asked["hub.lease_seconds"]))

    def do_POST(self) -> None:
        """The hub brings the whole new content of the topic."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        signature = "sha256=" + hmac.digest(SECRET.encode(), body, "sha256").hex()
        genuine = hmac.compare_digest(signature.encode(), self.headers.get("X-Hub-Signature", "").encode())
        self.answer(204 if genuine else 403)
        for item in json.loads(body)["items"] if genuine else ():
            if known.get(item["id"]) != item:
                known[item["id"]] = item
                print("new or changed:", item["id"], item["content_text"], flush=True)

    def answer(self, status: int, text: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Print news only."""


with urlopen(TOPIC) as feed:
    links = {rel: url for url, rel in re.findall('<([^>]*)>; rel="(hub|self)"', feed.headers["Link"])}
    known = {item["id"]: item for item in json.load(feed)["items"]}
tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
tls.load_cert_chain(CERTIFICATE)
server = ThreadingHTTPServer(("", urlsplit(CALLBACK).port or 443), Callback)
server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
threading.Thread(target=server.serve_forever, daemon=True).start()
form = {"hub.mode": "subscribe", "hub.topic": links["self"], "hub.callback": CALLBACK, "hub.secret": SECRET}
while True:
    try:
        with urlopen(links["hub"], urlencode(form).encode()) as accepted:
            print(accepted.status, accepted.read().decode(), flush=True)
    except HTTPError as refusal:
        sys.exit(refusal.read().decode())
    time.sleep(leases.get(timeout=60) / 2)  # then renew
