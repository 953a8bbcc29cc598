"""Reliability diagrams of probabilities against outcomes, for the local page."""

from __future__ import annotations

from html import escape

from core.confidence.ensemble import FloatArray
from core.confidence.measures import BINS, Reliability, ece, ece_floor, reliability
from core.model.text import counted

ACCENT = "#12909c"  # legible on light and dark pages
SAID, CAME_TRUE = "stated", "right"
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
TICK_LABELS = [f"{100 * tick:.0f} %" for tick in TICKS]
BIN = 1 / BINS
HISTOGRAM = 0.16  # height of the tallest bar as a share of the plot

SVG_SIDE, SVG_LEFT, SVG_TOP, SVG_RIGHT, SVG_BOTTOM = 320, 60, 56, 28, 44  # pixels: the plot and its margins


def summary(probabilities: FloatArray, correct: FloatArray) -> str:
    """Return the subtitle: the number of predictions, and the error that chance explains."""
    error, floor = 100 * ece(probabilities, correct), 100 * ece_floor(probabilities)
    return f"{counted(len(correct), 'outcome')} · off by {error:.1f} %; by chance alone {floor:.1f} %"


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
