"""Block Kit's published limits, checked: https://docs.slack.dev/reference/block-kit"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

MAX_BLOCKS = 50
MAX_TEXT = 3_000  # characters
MAX_ALL_TEXT = 12_000  # characters; undocumented: github.com/slackapi/bolt-js/issues/2509
MAX_FALLBACK = 40_000  # characters
MAX_VIEW_BLOCKS = 100
MAX_VIEW_TITLE = 24  # characters
MAX_VIEW = 250_000  # bytes
MAX_ELEMENTS = {"context": 10, "actions": 25, "context_actions": 5}
_DATE = re.compile(r"<!date\^\d+\^[^|>]*\|([^>]*)>")
THUMBS = ("positive_button", "negative_button")


def problems(text: str | None, blocks: list[dict[str, Any]] | None) -> list[str]:
    """What Slack would refuse about a message, each in one line."""
    found = [problem for index, block in enumerate(blocks or []) for problem in _block(f"blocks[{index}]", block)]
    if not text:
        found.append("text: missing, so that a notification would show nothing")
    elif len(text) > MAX_FALLBACK:
        found.append(f"text: {len(text)} characters")
    if len(blocks or []) > MAX_BLOCKS:
        found.append(f"blocks: {len(blocks or [])} of them")
    if (total := sum(map(len, texts(blocks)))) > MAX_ALL_TEXT:
        found.append(f"blocks: {total} characters in all")
    return found


def view_problems(view: dict[str, Any]) -> list[str]:
    """What Slack would refuse about a form or a person's own page, each in one line."""
    blocks = view.get("blocks", [])
    found = [problem for index, block in enumerate(blocks) for problem in _block(f"blocks[{index}]", block)]
    if not 1 <= len(blocks) <= MAX_VIEW_BLOCKS:
        found.append(f"blocks: {len(blocks)} of them")
    if len(view.get("private_metadata", "")) > MAX_TEXT:
        found.append(f"private_metadata: {len(view['private_metadata'])} characters")
    if len(json.dumps(view)) > MAX_VIEW:
        found.append(f"{len(json.dumps(view))} bytes in all")
    if view.get("type") == "modal":
        has_input = any(block["type"] == "input" for block in blocks)
        for name in ("title", "close", *(["submit"] if has_input or "submit" in view else [])):
            found += _text(name, view.get(name), ("plain_text",), MAX_VIEW_TITLE)
        if not 1 <= len(view.get("callback_id", "")) <= 255:
            found.append(f"callback_id: {len(view.get('callback_id', ''))} characters")
    elif view.get("type") != "home":
        found.append(f"type: {view.get('type')!r}")
    return found


def in_utc(text: str) -> str:
    """Return a text as it is shown to a reader whose app shows no times of its own."""
    return _DATE.sub(r"\1", text)


def texts(value: Any) -> Iterator[str]:
    """Every text that is shown, in reading order."""
    if isinstance(value, list):
        for each in value:
            yield from texts(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name in ("text", "title") and isinstance(each, str):
                yield each
            else:
                yield from texts(each)


def buttons(blocks: list[dict[str, Any]] | None) -> dict[str, dict[str, Any]]:
    """Label → what Slack sends of a button, or of an option of a menu, when it is pressed."""
    return {label: pressed for element in _elements(blocks) for label, pressed in _pressed(element)}


def subject(pressed: dict[str, Any]) -> str:
    """What a press is about, of a button, of an option or of a thumb."""
    said = pressed.get("value") or pressed["selected_option"]["value"]
    return said.partition("|")[2] or said


def in_sight(blocks: list[dict[str, Any]] | None) -> list[str]:
    """The labels of the controls that can be seen, the menu behind three dots left out."""
    return [
        label["text"]
        for each in _elements(blocks)
        if each["type"] != "overflow"
        for label in (
            [each[thumb]["text"] for thumb in THUMBS if thumb in each] or [each.get("text") or each["placeholder"]]
        )
    ]


def _elements(blocks: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    interactive = [block for block in blocks or [] if block["type"] in ("actions", "context_actions")]
    return [element for block in interactive for element in block["elements"]]


def _pressed(element: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    if element["type"] == "button":
        yield element["text"]["text"], element
        return
    if element["type"] == "feedback_buttons":
        for thumb in THUMBS:
            pressed = {"type": element["type"], "action_id": element["action_id"], "value": element[thumb]["value"]}
            yield element[thumb]["text"]["text"], pressed
        return
    groups = element.get("option_groups", [element])
    for option in (option for group in groups for option in group["options"]):
        picked = {"type": element["type"], "action_id": element["action_id"], "selected_option": option}
        yield option["text"]["text"], picked


def _block(path: str, block: dict[str, Any]) -> Iterator[str]:
    kind = block.get("type")
    match kind:
        case "section":
            yield from _text(f"{path}.text", block.get("text"), ("mrkdwn", "plain_text"), MAX_TEXT)
        case "header":
            yield from _text(f"{path}.text", block.get("text"), ("plain_text",), 150)
        case "plan":
            yield from _plan(path, block)
        case "context" | "actions" | "context_actions":
            elements = block.get("elements", [])
            if not 1 <= len(elements) <= MAX_ELEMENTS[kind]:
                yield f"{path}.elements: {len(elements)} of them"
            check = {"actions": _control, "context_actions": _feedback, "context": _context_element}[kind]
            for index, element in enumerate(elements):
                yield from check(f"{path}.elements[{index}]", element)
            identifiers = [element.get("action_id") for element in elements if kind == "actions"]
            if len(set(identifiers)) != len(identifiers):
                yield f"{path}.elements: an action_id twice"
        case "input":
            yield from _text(f"{path}.label", block.get("label"), ("plain_text",), 2_000)
            if "hint" in block:
                yield from _text(f"{path}.hint", block["hint"], ("plain_text",), 2_000)
            yield from _field(f"{path}.element", block.get("element", {}))
        case "divider":
            pass
        case _:
            yield f"{path}.type: {kind!r} is not used by Plumbline"


def _context_element(path: str, element: dict[str, Any]) -> Iterator[str]:
    yield from _text(path, element, ("mrkdwn", "plain_text"), MAX_TEXT)


def _plan(path: str, block: dict[str, Any]) -> Iterator[str]:
    """https://docs.slack.dev/reference/block-kit/blocks/plan-block"""
    if not block.get("title"):
        yield f"{path}.title: missing"
    for index, task in enumerate(block.get("tasks", [])):
        if task.get("type") != "task_card" or not task.get("task_id") or not task.get("title"):
            yield f"{path}.tasks[{index}]: {task}"
        if task.get("status") not in ("pending", "in_progress", "complete", "error"):
            yield f"{path}.tasks[{index}].status: {task.get('status')}"


def _feedback(path: str, element: dict[str, Any]) -> Iterator[str]:
    """https://docs.slack.dev/reference/block-kit/block-elements/feedback-buttons-element"""
    if element.get("type") != "feedback_buttons":
        yield f"{path}.type: {element.get('type')!r}"
    for thumb in THUMBS:
        yield from _text(f"{path}.{thumb}.text", element.get(thumb, {}).get("text"), ("plain_text",), 75)
        if not 1 <= len(element.get(thumb, {}).get("value", "")) <= 2_000:
            yield f"{path}.{thumb}.value: {element.get(thumb)}"


def _control(path: str, element: dict[str, Any]) -> Iterator[str]:
    match element.get("type"):
        case "static_select":
            yield from _text(f"{path}.placeholder", element.get("placeholder"), ("plain_text",), 150)
            yield from _picker(path, element)
        case "overflow":
            if not 1 <= len(element["options"]) <= 5:
                yield f"{path}.options: {len(element['options'])} of them"
            yield from _picker(path, element)
        case _:
            yield from _button(path, element)


def _button(path: str, element: dict[str, Any]) -> Iterator[str]:
    if element.get("type") != "button":
        yield f"{path}.type: {element.get('type')!r}"
    yield from _text(f"{path}.text", element.get("text"), ("plain_text",), 75)
    if not 1 <= len(element.get("value", "")) <= 2_000:
        yield f"{path}.value: {len(element.get('value', ''))} characters"
    if not 1 <= len(element.get("action_id", "")) <= 255:
        yield f"{path}.action_id: {len(element.get('action_id', ''))} characters"
    if element.get("style") not in (None, "primary", "danger"):
        yield f"{path}.style: {element['style']!r}"


def _options(path: str, element: dict[str, Any]) -> Iterator[str]:
    options = element.get("options", [])
    if not 1 <= len(options) <= 100:
        yield f"{path}.options: {len(options)} of them"
    for index, option in enumerate(options):
        yield from _text(f"{path}.options[{index}].text", option.get("text"), ("plain_text",), 75)
        if not 1 <= len(option.get("value", "")) <= 150:
            yield f"{path}.options[{index}].value: {len(option.get('value', ''))} characters"


def _picker(path: str, element: dict[str, Any]) -> Iterator[str]:
    groups = element.get("option_groups")
    if groups is None:
        yield from _options(path, element)
    elif "options" in element or not 1 <= len(groups) <= 100:
        yield f"{path}.option_groups: {len(groups)} of them, or options beside them"
    for index, group in enumerate(groups or ()):
        yield from _text(f"{path}.option_groups[{index}].label", group.get("label"), ("plain_text",), 75)
        yield from _options(f"{path}.option_groups[{index}]", group)
    if not 1 <= len(element.get("action_id", "")) <= 255:
        yield f"{path}.action_id: {len(element.get('action_id', ''))} characters"


def _field(path: str, element: dict[str, Any]) -> Iterator[str]:
    if element.get("type") == "static_select":
        yield from _picker(path, element)
        return
    if element.get("type") != "plain_text_input":
        yield f"{path}.type: {element.get('type')!r}"
    if not 1 <= element.get("max_length", 0) <= 3_000:
        yield f"{path}.max_length: {element.get('max_length')}"
    if not 1 <= len(element.get("action_id", "")) <= 255:
        yield f"{path}.action_id: {len(element.get('action_id', ''))} characters"


def _text(path: str, text: Any, kinds: tuple[str, ...], limit: int) -> Iterator[str]:
    if not isinstance(text, dict) or text.get("type") not in kinds:
        yield f"{path}: not a text object of type {' or '.join(kinds)}"
    elif not 1 <= len(text.get("text", "")) <= limit:
        yield f"{path}: {len(text.get('text', ''))} characters"
