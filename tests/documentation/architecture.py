"""Draws the layers of the code as docs/images/architecture.svg: `python -m tests.documentation.architecture`.

Everything in the picture is read from the imports: the packages, the layers that import each other, and below each package
of `core` the other ones that it imports.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

import grimp

IMAGE = Path(__file__).parents[2] / "docs" / "images" / "architecture.svg"
LAYERS = (("bot",), ("handlers", "adapters"), ("core",))  # as [tool.importlinter] in pyproject.toml has them

WIDTH = 960  # of the picture; all lengths are in pixels
GAP = 16
TITLE = 34  # height of a layer's name
BOX = 34  # height of a package
USES = 17  # height of a line of what a package imports
LETTER = 6.6  # width of a letter of what a package imports, at most

STYLE = """
text { font-family: system-ui, sans-serif; fill: #1f2328; }
.layer { fill: #f6f8fa; stroke: #d0d7de; }
.package { fill: #ffffff; stroke: #8c959f; }
.name { font-size: 14px; font-weight: 600; }
.title { font-size: 16px; font-weight: 700; }
.uses { font-size: 12px; fill: #59636e; }
.arrow { stroke: #0969da; stroke-width: 2; fill: none; marker-end: url(#head); }
#head path { fill: #0969da; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; }
  .layer { fill: #151b23; stroke: #3d444d; }
  .package { fill: #0d1117; stroke: #656c76; }
  .uses { fill: #9198a1; }
  .arrow { stroke: #4493f8; }
  #head path { fill: #4493f8; }
}
"""

Imports = Mapping[str, set[str]]  # package → packages that it imports; `core.rca`, or `core` for the layer


def imports() -> tuple[list[str], Imports]:
    """Return the packages, those of `core` that import most of it first, and which package and layer imports which."""
    graph = grimp.build_graph(*(name for layer in LAYERS for name in layer))
    packages = {module for module in graph.modules if module.count(".") == 1 and graph.find_children(module)}
    found: dict[str, set[str]] = defaultdict(set)
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            for depth in (1, 2):
                importer, target = (".".join(name.split(".")[:depth]) for name in (module, imported))
                if importer != target:
                    found[importer].add(target)
    by_imports = {
        each: sum(name.startswith("core.") for name in found[each]) for each in packages if each[:5] == "core."
    }
    return sorted(packages, key=lambda package: (-by_imports.get(package, 0), package)), found


def draw(packages: Iterable[str], found: Imports) -> str:
    """Return the picture."""
    inside = {
        layer: [package for package in packages if package.startswith(f"{layer}.")]
        for layer in (n for row in LAYERS for n in row)
    }
    parts: list[str] = []
    places: dict[str, tuple[float, float, float, float]] = {}  # x, y, width, height
    y = float(GAP)
    for row in LAYERS:
        width = (WIDTH - GAP * (len(row) + 1)) / len(row)
        drawn = [
            _layer(name, inside[name], found, GAP + number * (width + GAP), y, width) for number, name in enumerate(row)
        ]
        height = max(each[1] for each in drawn)
        for number, (name, (shapes, _)) in enumerate(zip(row, drawn, strict=True)):
            x = GAP + number * (width + GAP)
            places[name] = (x, y, width, height)
            parts.append(
                f'<rect class="layer" x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="8"/>'
            )
            parts += shapes
        y += height + 3 * GAP
    arrows = [
        _arrow(places[upper], places[lower])
        for upper in places
        for lower in places
        if lower in found.get(upper, ()) and not (upper == "bot" and lower == "core")  # runs through what lies between
    ]
    head = (
        '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="6" refY="4" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z"/></marker></defs>'
    )
    size = f'width="{WIDTH}" height="{y - 2 * GAP:.0f}" viewBox="0 0 {WIDTH} {y - 2 * GAP:.0f}"'
    title = "<title>The layers of Plumbline: bot imports handlers and adapters, which import core</title>"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            title,
            f"<style>{STYLE}</style>",
            head,
            *parts,
            *arrows,
            "</svg>",
            "",
        ]
    )


def _layer(name: str, packages: list[str], found: Imports, x: float, y: float, width: float) -> tuple[list[str], float]:
    """Return the shapes of one layer, and its height."""
    columns = 2 if width < WIDTH / 2 else 4
    box = (width - GAP * (columns + 1)) / columns
    shapes = [_text("title", x + GAP, y + 24, f"{name}/")]
    top = y + TITLE
    for start in range(0, len(packages), columns):
        row = packages[start : start + columns]
        lines = {package: _uses(package, found, box) for package in row}
        height = BOX + USES * max(len(each) for each in lines.values())
        for number, package in enumerate(row):
            left = x + GAP + number * (box + GAP)
            shapes.append(
                f'<rect class="package" x="{left:.0f}" y="{top:.0f}" width="{box:.0f}" height="{height:.0f}" rx="5"/>'
            )
            shapes.append(_text("name", left + 10, top + 22, package.split(".")[1]))
            shapes += [
                _text("uses", left + 10, top + BOX + 4 + USES * place, line)
                for place, line in enumerate(lines[package])
            ]
        top += height + GAP
    return shapes, top - y


def _uses(package: str, found: Imports, width: float) -> list[str]:
    """Return the lines that say which packages of `core` a package of `core` imports."""
    if not package.startswith("core."):
        return []
    lines: list[str] = []
    for name in sorted(each.split(".")[1] for each in found.get(package, ()) if each.startswith("core.")):
        if lines and len(lines[-1]) + len(name) + 2 <= (width - 20) / LETTER:
            lines[-1] += f", {name}"
        else:
            lines.append(name if lines else f"→ {name}")
    return lines


def _text(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}">{escape(text)}</text>'


def _arrow(upper: tuple[float, float, float, float], lower: tuple[float, float, float, float]) -> str:
    x = max(upper[0], lower[0]) + min(upper[2], lower[2]) / 2
    return f'<path class="arrow" d="M{x:.0f},{upper[1] + upper[3]:.0f} V{lower[1] - 4:.0f}"/>'


if __name__ == "__main__":
    IMAGE.write_text(draw(*imports()), encoding="utf-8")
