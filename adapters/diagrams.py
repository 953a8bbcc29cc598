"""Reliability diagrams of probabilities against outcomes, as PNG for the chats and as SVG for the local page."""

from __future__ import annotations

from html import escape
from io import BytesIO

import numpy as np

from core.confidence.ensemble import FloatArray
from core.confidence.measures import BINS, Reliability, ece, ece_floor, reliability
from core.model.message_view import Diagram
from core.model.text import counted

GRID, PALE = "#e4e7ea", "#d3d8dc"
INK, FAINT, ACCENT = "#15191d", "#8c97a1", "#12909c"  # the accent is legible on light and dark pages
SAID, CAME_TRUE = "stated", "right"
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
TICK_LABELS = [f"{100 * tick:.0f} %" for tick in TICKS]
BIN = 1 / BINS
HISTOGRAM = 0.16  # height of the tallest bar as a share of the plot

PNG_SCALE = 2.0  # pixels for each of the SVG's
COLORS = 64  # in a PNG
SMOOTHING = 2  # factor by which a picture is drawn larger and then scaled down
SVG_SIDE, SVG_LEFT, SVG_TOP, SVG_RIGHT, SVG_BOTTOM = 320, 60, 56, 28, 44  # pixels: the plot and its margins


def summary(probabilities: FloatArray, correct: FloatArray) -> str:
    """Return the subtitle: the number of predictions, and the error that chance explains."""
    error, floor = 100 * ece(probabilities, correct), 100 * ece_floor(probabilities)
    return f"{counted(len(correct), 'outcome')} · off by {error:.1f} %; by chance alone {floor:.1f} %"


def diagram_png(diagram: Diagram, scale: float = PNG_SCALE) -> bytes:
    """Return the picture of a diagram as `reliability_png` does. Drawing is slow: call this in a thread."""
    correct = np.array(diagram.correct, dtype=np.float64)
    return reliability_png(diagram.title, np.array(diagram.shown), correct, scale)


def reliability_png(title: str, probabilities: FloatArray, correct: FloatArray, scale: float = PNG_SCALE) -> bytes:
    """Return the diagram as a PNG: accuracy by stated probability, over bars that count the predictions.

    `probabilities` in [0, 1] and `correct` (0 or 1): shape (n,), n ≥ 1. `scale`: pixels per pixel of the SVG. The font
    has only English letters.
    """
    from PIL import Image

    bins = reliability(probabilities, correct)
    width, height = SVG_LEFT + SVG_SIDE + SVG_RIGHT, SVG_TOP + SVG_SIDE + SVG_BOTTOM
    drawn = _Drawing(width, height, scale * SMOOTHING)
    for tick, label in zip(TICKS, TICK_LABELS, strict=True):
        drawn.line(0, tick, 1, tick, GRID, 1)
        drawn.text(SVG_LEFT - 8, _y(tick), label, 12, "rm")
        drawn.text(_x(tick), _y(0) + 8, label, 12, "mt")
    low, high = bins.interval
    for upper, bar in zip(bins.upper, _bars(bins), strict=True):
        drawn.line(float(upper) - BIN / 2, 0, float(upper) - BIN / 2, float(bar), PALE, 0.8 * BIN * SVG_SIDE)
    drawn.line(0, 0, 1, 1, FAINT, 1)
    for stated, came_true, least, most in zip(bins.confidence, bins.accuracy, low, high, strict=True):
        drawn.line(float(stated), float(least), float(stated), float(most), ACCENT, 2)
        drawn.dot(float(stated), float(came_true), ACCENT)
    drawn.text(SVG_LEFT, 10, title, 15, "lt")
    drawn.text(SVG_LEFT, 32, summary(probabilities, correct), 12, "lt")
    drawn.text(_x(0.5), height - 6, SAID, 12, "mb")
    drawn.text(SVG_LEFT - 8, _y(0.875), CAME_TRUE, 11, "rm")
    picture = BytesIO()
    size = (round(width * scale), round(height * scale))
    smooth = drawn.image.resize(size, Image.Resampling.LANCZOS).quantize(COLORS)
    smooth.save(picture, format="PNG", optimize=True)
    return picture.getvalue()


class _Drawing:
    """A picture in the coordinates of the SVG: shares of the plot for lines and dots, its pixels for texts."""

    def __init__(self, width: int, height: int, scale: float) -> None:
        from PIL import Image, ImageDraw

        self._scale = scale
        self.image = Image.new("RGB", (round(width * scale), round(height * scale)), "white")
        self._draw = ImageDraw.Draw(self.image)

    def line(self, x1: float, y1: float, x2: float, y2: float, color: str, width: float) -> None:
        ends = [self._scale * each for each in (_x(x1), _y(y1), _x(x2), _y(y2))]
        self._draw.line(ends, fill=color, width=max(1, round(self._scale * width)))

    def dot(self, x: float, y: float, color: str) -> None:
        self._draw.circle((self._scale * _x(x), self._scale * _y(y)), self._scale * 5, fill=color)

    def text(self, x: float, y: float, text: str, size: float, anchor: str) -> None:
        from PIL import ImageFont

        font = ImageFont.load_default(self._scale * size)
        self._draw.text((self._scale * x, self._scale * y), text, fill=INK, font=font, anchor=anchor)


def reliability_svg(title: str, probabilities: FloatArray, correct: FloatArray) -> str:
    """Return the diagram as an inline `svg` element that inherits the page's text colour and font."""
    curve = reliability(probabilities, correct)
    sentence = summary(probabilities, correct)
    width, height = SVG_LEFT + SVG_SIDE + SVG_RIGHT, SVG_TOP + SVG_SIDE + SVG_BOTTOM
    marks = "".join(_grid_line(tick, label) for tick, label in zip(TICKS, TICK_LABELS, strict=True))
    marks += _line(0, 0, 1, 1, 'stroke="currentColor" stroke-opacity="0.5" stroke-dasharray="4 4"')
    low, high = curve.interval
    bins = zip(curve.upper, curve.confidence, curve.accuracy, low, high, _bars(curve), curve.counts, strict=True)
    marks += "".join(_bin(*(float(value) for value in values)) for values in bins)
    middle = SVG_TOP + SVG_SIDE / 2
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(f"{title}: {sentence}")}" font-size="12" fill="currentColor">'
        f'<text x="{SVG_LEFT}" y="18" font-size="15" font-weight="600">{escape(title)}</text>'
        f'<text x="{SVG_LEFT}" y="38" fill-opacity="0.8" font-size="12">{escape(sentence)}</text>{marks}'
        f'<text x="{_x(0.5):g}" y="{height - 6}" text-anchor="middle">{SAID}</text>'
        f'<text transform="translate(14 {middle:g}) rotate(-90)" text-anchor="middle">{CAME_TRUE}</text></svg>'
    )


def _grid_line(tick: float, label: str) -> str:
    return (
        _line(0, tick, 1, tick, 'stroke="currentColor" stroke-opacity="0.12"')
        + f'<text x="{SVG_LEFT - 8}" y="{_y(tick) + 4:g}" text-anchor="end">{label}</text>'
        + f'<text x="{_x(tick):g}" y="{_y(0) + 18:g}" text-anchor="middle">{label}</text>'
    )


def _bin(upper: float, stated: float, came_true: float, low: float, high: float, bar: float, count: float) -> str:
    """Return the accuracy of a bin with its 95 % interval, over a bar for its number of predictions."""
    middle, width = upper - BIN / 2, 0.8 * BIN * SVG_SIDE
    return (
        f"<g><title>stated {100 * stated:.0f} %, right {100 * came_true:.0f} % of {count:.0f}</title>"
        + _line(middle, 0, middle, bar, f'stroke="currentColor" stroke-opacity="0.2" stroke-width="{width:g}"')
        + _line(stated, low, stated, high, f'stroke="{ACCENT}" stroke-opacity="0.6" stroke-width="2.5"')
        + f'<circle cx="{_x(stated):.1f}" cy="{_y(came_true):.1f}" r="5" fill="{ACCENT}"/></g>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, attributes: str) -> str:
    return f'<line x1="{_x(x1):.1f}" y1="{_y(y1):.1f}" x2="{_x(x2):.1f}" y2="{_y(y2):.1f}" {attributes}/>'


def _x(share: float) -> float:
    return SVG_LEFT + SVG_SIDE * share


def _y(share: float) -> float:
    return SVG_TOP + SVG_SIDE * (1 - share)


def _bars(bins: Reliability) -> FloatArray:
    return HISTOGRAM * bins.counts / bins.counts.max()
