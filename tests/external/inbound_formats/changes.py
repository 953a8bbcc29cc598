"""What the senders really send, changed in places; and nonsense of every kind."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any
from urllib.parse import urlencode

from hypothesis import strategies as st

Payload = dict[str, Any]

LARGE = 2_000  # characters of what is not made larger still

MOMENTS = [
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00Z",
    "1969-12-31T23:59:59.999Z",
    "2026-03-14T09:30:00+23:59",
    "-0001-01-01T00:00:00Z",
    "999999999999.999999999",
    "0.0",
    "-1.5",
    "1e308",
    "NaN",
    "inf",
    "2026-02-30T00:00:00Z",
]
TEXTS = [
    "",
    "\x00",
    "\ud800",
    "💩" * 50,
    "a" * 5_000,
    "../../etc/passwd",
    "<script>alert(1)</script>",
    "<!channel> <@U1> <https://evil.example|x>",
    "${jndi:ldap://x}",
    "' OR 1=1 --",
    "\u202eabc",
    "{{ 7 * 7 }}",
    "correct: x",
    "root cause: x",
    "help",
    "silence till for 99999999999999d",
    "٣٤٥",
]
NUMBERS = [0, -1, 2**31, 2**63, -(2**63) - 1, 10**400, 1e308, -0.0, 0.1]

plain = st.text(max_size=30)
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=True)
    | plain
    | st.sampled_from([*MOMENTS, *TEXTS, *NUMBERS])
)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(plain, inner, max_size=4), max_leaves=8
)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something stands in a payload."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(each for key, child in inner for each in _paths(child, (*path, key)))]


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


@st.composite
def changed(draw: st.DrawFn, payloads: st.SearchStrategy[Any]) -> Any:
    """A payload with up to three things in it replaced, removed, repeated, renamed or nested."""
    payload = deepcopy(draw(payloads))
    for _ in range(draw(st.integers(0, 3))):
        *path, last = draw(st.sampled_from([each for each in _paths(payload) if each] or [(None,)]))
        if last is None:
            return payload
        holder = _at(payload, tuple(path))
        match draw(st.sampled_from(["replace", "remove", "nest", "repeat", "rename"])):
            case "replace":
                holder[last] = draw(values)
            case "remove":
                del holder[last]
            case "nest":
                holder[last] = [holder[last]]
            case "repeat" if isinstance(holder, list) and len(as_json(holder)) < LARGE:
                holder.extend([holder[last]] * draw(st.integers(1, 200)))
            case "repeat" if isinstance(holder[last], str) and len(holder[last]) < LARGE:
                holder[last] *= draw(st.integers(1, 100))
            case _ if isinstance(holder, dict):
                holder[draw(plain)] = holder.pop(last)
            case _:
                holder[last] = draw(values)
    return payload


@st.composite
def spoilt(draw: st.DrawFn, bodies: st.SearchStrategy[bytes]) -> bytes:
    """Mostly the body itself; else cut, with bytes put in, or something else altogether."""
    body = draw(bodies)
    match draw(st.sampled_from(["", "", "", "", "", "cut", "insert", "double", "nonsense"])):
        case "cut":
            return body[: draw(st.integers(0, len(body)))]
        case "insert":
            at = draw(st.integers(0, len(body)))
            return body[:at] + draw(st.binary(min_size=1, max_size=8)) + body[at:]
        case "double":
            return body + body
        case "nonsense":
            return draw(st.binary(max_size=200) | values.map(as_json))
        case _:
            return body


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()  # half characters are escaped, NaN is written as such


def encoded(payloads: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    return spoilt(changed(payloads).map(as_json))


FORM = "application/x-www-form-urlencoded"


def as_form(fields: Any) -> bytes:
    if not isinstance(fields, dict):
        return as_json(fields)
    flat = {str(name): value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
    return urlencode(flat, errors="surrogatepass").encode()
