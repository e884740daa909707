"""A link checker: asks for everything that a website links to, as browsers would.

It knows HTML, XML, JSON and Markdown by their links alone, and nothing of this service.
"""

import http.client
import re
from collections import deque
from html import unescape
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

IN_HTML = re.compile(r'\s(?:href|src|action)="([^"]*)"')
# In feeds, sitemaps, data and Markdown: whole URLs.
IN_TEXT = re.compile(r"https?://[^\s\"'<>)\\]+")


class Checked(NamedTuple):
    """What was asked for, by URL, and what did not answer with status 200."""

    asked: set[str]
    broken: dict[str, int]


def check_links(start: str) -> Checked:
    """Follow all links from `start` on to the same host. Redirects count as broken."""
    host = urlsplit(start).netloc
    connection = http.client.HTTPConnection(host, timeout=30)
    waiting = deque([start])
    asked = {start}
    broken = {}
    while waiting:
        url = waiting.popleft()
        connection.request("GET", urlsplit(url).path or "/")
        answer = connection.getresponse()
        body = answer.read().decode("utf-8", "replace")
        if answer.status != 200:
            broken[url] = answer.status
        for link in _links(body, answer.headers.get_content_type()):
            target = urljoin(url, link).partition("#")[0]
            if urlsplit(target).netloc == host and target not in asked:
                asked.add(target)
                waiting.append(target)
    connection.close()
    return Checked(asked, broken)


def _links(body: str, content_type: str) -> list[str]:
    if content_type == "text/html":
        return [unescape(link) for link in IN_HTML.findall(body)]
    return [unescape(link) for link in IN_TEXT.findall(body)]
