"""Plots as SVG: lines over logarithmic axes, in panels side by side, readable on light and dark pages.

A plot has a background of its own, which follows the reader's colour scheme together with everything on it.

Sections: What is drawn - Scales - Panels - The picture
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from xml.sax.saxutils import escape

# ---- What is drawn ----

Point = tuple[float, float]  # both more than 0


@dataclass(frozen=True, slots=True)
class Line:
    """Measured points, with the name that stands beside them."""

    name: str
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes, for at most two lines."""

    title: str
    x_title: str
    y_title: str
    lines: Sequence[Line]


# ---- Scales ----


@dataclass(frozen=True, slots=True)
class Scale:
    """From the numbers of one axis to the picture's coordinates."""

    least: int  # powers of ten
    greatest: int
    start: float
    end: float

    def place(self, value: float) -> float:
        """Where `value` is."""
        share = (log10(value) - self.least) / (self.greatest - self.least)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> Iterator[float]:
        """The powers of ten."""
        return (10.0**power for power in range(self.least, self.greatest + 1))


def scale(values: Sequence[float], start: float, end: float) -> Scale:
    """A scale between whole powers of ten."""
    least = floor(log10(min(values)))
    return Scale(least, max(least + 1, ceil(log10(max(values)))), start, end)


# ---- Panels ----

WIDTH, HEIGHT = 330, 300  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 52, 26, 44, 46  # what is beside its axes
COLOURS = ("a", "b")


def _panel(panel: Panel, left: float) -> Iterator[str]:
    points = [point for line in panel.lines for point in line.points]
    across = scale([x for x, _ in points], left + LEFT, left + WIDTH - RIGHT)
    up = scale([y for _, y in points], HEIGHT - BOTTOM, TOP)
    yield _text(left + LEFT, 20, panel.title, "title", "start")
    yield from _axes(panel, across, up)
    highest = max(panel.lines, key=lambda line: line.points[-1][1])
    for colour, line in zip(COLOURS, panel.lines, strict=False):
        yield from _line(line, across, up, colour, above=line is highest)


def _axes(panel: Panel, across: Scale, up: Scale) -> Iterator[str]:
    for tick in up.ticks():
        y = up.place(tick)
        yield f'<line class="grid" x1="{across.start:g}" x2="{across.end:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield _text(across.start - 6, y + 4, figure(tick), "tick", "end")
    for tick in across.ticks():
        x = across.place(tick)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{up.start:g}" y2="{up.end:g}"/>'
        yield _text(x, up.start + 16, figure(tick), "tick", "middle")
    yield _text((across.start + across.end) / 2, HEIGHT - 10, panel.x_title, "axis", "middle")
    yield _text(across.start, 36, panel.y_title, "axis", "start")


def _line(line: Line, across: Scale, up: Scale, colour: str, above: bool) -> Iterator[str]:
    places = [(across.place(x), up.place(y)) for x, y in line.points]
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline class="line {colour}" points="{corners}"/>'
    for (x, y), (_, value) in zip(places, line.points, strict=True):
        yield f'<circle class="dot {colour}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
        lifted = above or y + 18 > up.start  # the figures of the axis stand below that
        height = y - 9 if lifted else y + 18
        yield _text(x, height, figure(value), f"value {colour}", _side(x, across, lifted))
    # What grows leaves a corner free, and the lower line has its figures below.
    height = up.end + 16 if above else min(y for _, y in places[:-1]) - 10
    yield _text(across.start + 8, height, line.name, f"name {colour}", "start")


def _side(x: float, across: Scale, above: bool) -> str:
    """The anchor of a text at x that keeps it off a line that rises, and between the ends of the axis."""
    if x < across.start + 8:
        return "start"
    return "end" if above or x > across.end - 20 else "middle"


def figure(value: float) -> str:
    """Two digits, or all of them before the point."""
    if value >= 10:
        return f"{value:,.0f}"
    return f"{value:.2g}"


def _text(x: float, y: float, text: str, kind: str, anchor: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


# ---- The picture ----

STYLE = """
svg { color-scheme: light dark; }
text { font: 11px system-ui, sans-serif; fill: #1f2328; }
.ground { fill: #ffffff; }
.title { font-size: 13px; font-weight: 600; }
.axis, .tick { fill: #59636e; }
.grid { stroke: #d1d9e0; stroke-width: 1; }
.line { fill: none; stroke-width: 2; }
.line.a { stroke: #0969da; } .dot.a, .value.a, .name.a { fill: #0969da; }
.line.b { stroke: #bc4c00; } .dot.b, .value.b, .name.b { fill: #bc4c00; }
.name { font-weight: 600; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .ground { fill: #0d1117; }
  .axis, .tick { fill: #9198a1; }
  .grid { stroke: #3d444d; }
  .line.a { stroke: #4493f8; } .dot.a, .value.a, .name.a { fill: #4493f8; }
  .line.b { stroke: #f0883e; } .dot.b, .value.b, .name.b { fill: #f0883e; }
}
"""


def picture(description: str, panels: Sequence[Panel]) -> str:
    """The SVG document; `description` is what somebody hears who does not see it."""
    width = WIDTH * len(panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}"'
        f' height="{HEIGHT}" role="img">',
        f"<title>{escape(description)}</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{width}" height="{HEIGHT}" rx="6"/>',
    ]
    for number, panel in enumerate(panels):
        parts += _panel(panel, number * WIDTH)
    return "\n".join([*parts, "</svg>"]) + "\n"
