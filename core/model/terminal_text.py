"""Remove from a text what a terminal obeys instead of showing it."""

from __future__ import annotations

import re

_SHOWN = r"(?:\[(?:[\d;?]{1,30}[A-Za-z]|[mK])|[PX\]^_][^^\n\u2407\u241b]*+(?:\^G|\u2407|(?:\^\[|\u241b)\\))"
_CONTROL = re.compile(
    # ECMA-48, sections 5.3 to 5.6: control sequences; control strings (APC, DCS, OSC, PM, SOS), which end with ST, with BEL
    # as in xterm, or at the next escape; other escape sequences. Each alternative begins with one character, for speed.
    r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|_bk;t=\d{1,16}\x07?|[PX\]^_][^\x07\x1b\x9c\n]*+(?:[\x07\x9c]|\x1b\\|(?=\x1b)|\Z)|[ -/]*+[0-~])?"
    r"|\x9b[0-?]*+[ -/]*+[@-~]|"
    + "|".join(rf"{start}[^\x07\x1b\x80\x90\x98\x9c-\x9f\n]*+\x9c" for start in "\x90\x98\x9d\x9e\x9f")
    + rf"|\^\[{_SHOWN}|\u241b{_SHOWN}"  # as pagers and editors show them
    r"|_bk;t=\d{1,16}"  # the time of Buildkite without its ends, and a colour without its escape, but no range of a query
    r"|\[\d{1,3}(?:;\d{1,3}){0,4}[mK](?!\])"
)


def without_control(text: str) -> str:
    """Return the text without control sequences, control strings and other escape sequences. It has as many lines."""
    return _CONTROL.sub("", text)
