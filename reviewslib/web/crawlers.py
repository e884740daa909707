"""The documents for programs that walk through websites: the sitemap and robots.txt."""

from __future__ import annotations

from urllib.parse import urlsplit

from markupsafe import escape

from reviewslib.links import ServiceUrls
from reviewslib.web.site import Site

# A sitemap has at most 50,000 URLs (sitemaps.org); some are left for the other pages.
MAX_SITEMAP_REVIEWS = 49_990
SITEMAP_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
)


def sitemap(site: Site, limit: int = MAX_SITEMAP_REVIEWS) -> bytes:
    """The URLs of the pages with the days of their last changes, `application/xml`."""
    urls = site.urls
    reviews = site.dataset.reviews
    newest = max((review.changed_day for review in reviews), default="")
    parts = [
        SITEMAP_HEAD,
        _sitemap_entry(urls.home, newest),
        _sitemap_entry(urls.review_list, newest),
    ]
    for review in reviews[:limit]:
        parts.append(_sitemap_entry(urls.review_page(review.id), review.changed_day))
    parts.append("</urlset>\n")
    return "".join(parts).encode()


def _sitemap_entry(address: str, day: str) -> str:
    lastmod = f"<lastmod>{day}</lastmod>" if day else ""
    return f"<url><loc>{escape(address)}</loc>{lastmod}</url>\n"


def robots_text(urls: ServiceUrls) -> bytes:
    """robots.txt (RFC 9309), `text/plain`: only what accepts only POST is barred.

    `Agentmap` is that of ARD 0.91.
    """
    lines = ["User-agent: *\n"]
    for url in (urls.mcp, urls.hub):
        # The hub has no URL where none runs.
        if url:
            lines.append(f"Disallow: {urlsplit(url).path}\n")
    if urls.server_card:
        # The longer match wins (RFC 9309 section 2.2.2).
        lines.append(f"Allow: {urlsplit(urls.server_card).path}\n")
    lines.append("Allow: /\n")
    lines.append(f"Sitemap: {urls.sitemap}\n")
    if urls.host_catalogue:
        lines.append(f"Agentmap: {urls.host_catalogue}\n")
    return "".join(lines).encode()
