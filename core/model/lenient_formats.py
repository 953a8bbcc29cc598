"""JSON, YAML and text as other programs write them: with a byte order mark, in UTF-16, with half of a surrogate pair, as
templates make JSON (a line break in a string, a comma after the last item), or nested so deep that reading it would end
the process.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any

import yaml

REPLACEMENT = "\ufffd"

_MARKS = (  # UTF-32 first, because its mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LONE = re.compile("[\ud800-\udfff]")
# A string is matched whole, so that a comma in it is kept; one that does not end reaches the end of the text.
_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+(?:"|\\?\Z))|,(?=\s*+[\]}])', re.DOTALL)
# Every escape is matched, so that an escaped backslash before "ud83d" is not taken for the start of one.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|[^\n])"
)


def decode_text(body: bytes, default: str = "utf-8") -> str:
    """Return the text of a file or body, by its byte order mark if it has one. What is invalid is replaced."""
    encoding = next((name for mark, name in _MARKS if body.startswith(mark)), default)
    return _LONE.sub(REPLACEMENT, body.decode(encoding, "replace"))


def json_text(body: bytes | str) -> str:
    """Return JSON that every parser accepts: without a byte order mark, a lone surrogate replaced."""
    if isinstance(body, str):
        text = _LONE.sub(REPLACEMENT, body.removeprefix("\ufeff"))
    else:
        text = decode_text(body, json.detect_encoding(body))
    return _ESCAPE.sub(_whole, text) if "\\ud" in text or "\\uD" in text else text


def load_json(body: bytes | str) -> Any:
    """Return the value of a JSON text. Raises ValueError if it is not JSON, or nested too deeply.

    Control characters in strings, commas after a last item and trailing NULs are accepted.
    """
    text = json_text(body).rstrip("\0 \t\r\n")
    try:
        try:
            return json.loads(text, strict=False)
        except ValueError:
            return json.loads(_LAST_COMMA.sub(r"\1", text), strict=False)
    except RecursionError as error:
        raise ValueError("The JSON is nested too deeply.") from error


def _whole(escape: re.Match[str]) -> str:
    return "\\ufffd" if escape["lone"] else escape[0]


DEEPEST = 100  # levels; a manifest of Kubernetes has about a dozen

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def refuse_deep_yaml(text: str) -> None:
    """Raise yaml.YAMLError if a text is not YAML, or nests deeper than DEEPEST.

    Parsing yields one event after another, but composing calls itself on each level: libyaml's function then exhausts the
    stack of the process, and PyYAML's takes seconds for some thousand brackets.
    """
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise yaml.YAMLError(f"It nests deeper than {DEEPEST} levels.")
