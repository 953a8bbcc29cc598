"""Adaptive Cards 1.5 as Teams takes them, checked: https://adaptivecards.io/explorer"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

MAX_MESSAGE = 80 * 1024  # bytes in UTF-16, as Teams advises
MAX_ACTIONS = 6  # shown; further ones hide in a menu, as do those that are meant to
SPACINGS = {None, "None", "Small", "Default", "Medium", "Large"}
SIZES = {None, "Small", "Default", "Medium", "Large"}
WEIGHTS = {None, "Default", "Bolder", "Lighter"}
COLORS = {None, "Default", "Accent", "Good", "Warning", "Attention"}
STYLES = {None, "default", "emphasis", "good", "attention", "warning", "accent"}
_TIME = re.compile(r"\{\{TIME\([^)]*T(\d\d:\d\d):\d\dZ\)\}\}")
_DATE = re.compile(r"\{\{DATE\((\d{4}-\d\d-\d\d)T[^)]*\)\}\}")
TEXT_PROPERTIES = {"type", "text", "size", "weight", "color", "isSubtle", "italic", "fontType"}


def problems(card: dict[str, Any], summary: str) -> list[str]:
    """What Teams would refuse or hide, each in one line."""
    found = [problem for index, element in enumerate(card["body"]) for problem in _element(f"body[{index}]", element)]
    actions = card.get("actions", [])
    found += [problem for index, action in enumerate(actions) for problem in _action(f"actions[{index}]", action)]
    if "refresh" in card and (card["refresh"]["action"]["type"], card["refresh"]["action"]["verb"]) != (
        "Action.Execute",
        "refresh",
    ):
        found.append("refresh: not by Action.Execute")
    primary = [action for action in actions if action.get("mode") != "secondary"]
    if len(primary) > MAX_ACTIONS:
        found.append(f"actions: {len(primary)} of them")
    if (card["type"], card["version"]) != ("AdaptiveCard", "1.5"):
        found.append(f"version: {card['version']}")
    if not card["body"]:
        found.append("body: empty")
    if not summary or not card["fallbackText"]:
        found.append("summary: missing, so that a notification would show nothing")
    if (
        size := len(json.dumps([card, summary], ensure_ascii=False).encode("utf-16-le", "surrogatepass"))
    ) > MAX_MESSAGE:
        found.append(f"card: {size} bytes")
    return found


def in_utc(text: str) -> str:
    """Return a text with its times as Plumbline names them where an app shows no times of its own."""
    return _DATE.sub(r"\1", _TIME.sub(r"\1 UTC", text))


def texts(value: Any) -> list[str]:
    """Every text that is shown, in reading order, a line as one text."""
    if isinstance(value, list):
        return [text for each in value for text in texts(each)]
    if not isinstance(value, dict):
        return []
    if value.get("type") == "RichTextBlock":
        return ["".join(inline["text"] for inline in value["inlines"])]
    if value.get("type") == "TextBlock":
        return [value["text"]]
    if value.get("type") == "CodeBlock":
        return value["codeSnippet"].splitlines()
    return texts([each for name, each in value.items() if name != "fallback"])


def of_type(value: Any, kind: str) -> Iterator[dict[str, Any]]:
    """Every element of a type, wherever it stands."""
    if isinstance(value, dict) and value.get("type") == kind:
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from of_type(each, kind)


def _element(path: str, element: dict[str, Any]) -> Iterator[str]:
    if element.get("spacing") not in SPACINGS:
        yield f"{path}.spacing: {element['spacing']!r}"
    match element["type"]:
        case "TextBlock":
            yield from _text(path, element, {"spacing", "wrap"})
        case "RichTextBlock":
            yield from _runs(path, element["inlines"])
        case "Image" | "Input.Text" | "Input.ChoiceSet":
            yield from _leaf(path, element)
        case "Container":
            if element.get("style") not in STYLES:
                yield f"{path}.style: {element['style']!r}"
            yield from _elements(f"{path}.items", element["items"])
        case "ColumnSet":
            for index, column in enumerate(element["columns"]):
                yield from _elements(f"{path}.columns[{index}]", column["items"])
        case "CodeBlock" | "Table":
            yield from _with_fallback(path, element)
        case kind:
            yield f"{path}.type: {kind!r} is not used by Plumbline"


def _with_fallback(path: str, element: dict[str, Any]) -> Iterator[str]:
    is_code = element["type"] == "CodeBlock"
    rows = [] if is_code else element["rows"]
    lines = [text or " " for text in texts(element)] if is_code else [" · ".join(texts(row)) for row in rows]
    if not lines or lines != texts(element["fallback"]):
        yield f"{path}.fallback: empty, or says something else"
    if any(len(row["cells"]) != len(element["columns"]) for row in rows):
        yield f"{path}.rows: not as wide as the table"
    items = [each for row in rows for cell in row["cells"] for each in cell["items"]]
    yield from _elements(f"{path}.fallback", [element["fallback"], *items])


def _runs(path: str, runs: list[dict[str, Any]]) -> Iterator[str]:
    if not runs:
        yield f"{path}.inlines: empty"
    for index, run in enumerate(runs):
        yield from _text(f"{path}.inlines[{index}]", run, {"selectAction"})


def _leaf(path: str, element: dict[str, Any]) -> Iterator[str]:
    is_image = element["type"] == "Image"
    if is_image and (not element["url"].startswith("data:image/png;base64,") or not element["altText"]):
        yield f"{path}: no picture of ours, or none that is told in words"
    if not is_image and (not element["id"] or not element["label"] or element.get("maxLength", 1) < 1):
        yield f"{path}: without an id, a label or a length"

    if any(not choice["title"] or not choice["value"] for choice in element.get("choices", ())):
        yield f"{path}.choices: one without a title or a value"


def _elements(path: str, elements: list[dict[str, Any]]) -> Iterator[str]:
    if not elements:
        yield f"{path}: empty"
    for index, element in enumerate(elements):
        yield from _element(f"{path}[{index}]", element)


def _text(path: str, text: dict[str, Any], more: set[str]) -> Iterator[str]:
    if unknown := set(text) - TEXT_PROPERTIES - more:
        yield f"{path}: {unknown}"
    if not text["text"]:
        yield f"{path}.text: empty"
    if text.get("size") not in SIZES or text.get("weight") not in WEIGHTS or text.get("color") not in COLORS:
        yield f"{path}: a size, weight or colour that there is not"
    if "selectAction" in text:
        yield from _action(f"{path}.selectAction", text["selectAction"])


def _action(path: str, action: dict[str, Any]) -> Iterator[str]:
    match action["type"]:
        case "Action.OpenUrl":
            if not action["url"].startswith(("http://", "https://")):
                yield f"{path}.url: {action['url']!r}"
        case "Action.Execute":
            if action["fallback"]["type"] != "Action.Submit" or action["fallback"]["data"] != action["data"]:
                yield f"{path}.fallback: says something else"
            if not action["verb"] or not action["title"]:
                yield f"{path}: without a verb or a title"
        case "Action.Submit":  # a button that opens a dialog
            if set(action["data"]) != {"verdict", "subject", "msteams"} or not action["title"]:
                yield f"{path}.data: {action['data']}"
            if action["data"].get("msteams") != {"type": "task/fetch"}:
                yield f"{path}.data.msteams: opens no dialog"
        case "Action.ShowCard":  # unfolds further buttons
            inner = action["card"]["actions"]
            if not action["title"] or not inner:
                yield f"{path}: without a title or a button"
            for index, each in enumerate(inner):
                yield from _action(f"{path}.card.actions[{index}]", each)
        case kind:
            yield f"{path}.type: {kind!r} is not used by Plumbline"
