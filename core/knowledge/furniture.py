"""Removal of the furniture of a site from its pages, and of the numbers of lines from code."""

from __future__ import annotations

import re
from textwrap import dedent

SHORTEST_NUMBERED = 3  # lines of code with numbers; fewer may be data

_LINK = r"(?:\]\([^)\n]{0,500}\))?"
_ANSWER = rf"(?:[^\w\n]|\b(?:yes|no)\b{_LINK})"
_FURNITURE = re.compile(
    r"(?mi)^[^\w\n]{0,10}(?:(?:was|is) this (?:page|article|topic|document(?:ation)?|guide|information|content|answer) (?:helpful|useful)"
    r"|did this (?:page|article|answer) help(?: you)?|found an error on this page|(?:edit|improve) this page(?: on \w{1,20})?"
    r"|edit (?:this page |source )?on (?:github|gitlab|bitbucket)|(?:view|show) (?:page )?source|skip to (?:the )?(?:main )?content"
    rf"|back to (?:the )?top){_LINK}{_ANSWER}{{0,40}}$\n?(?:\s{{0,5}}^{_ANSWER}{{1,40}}$\n?){{0,2}}"
)
_NEIGHBOURS = re.compile(
    r"(?mi)^[ \t]*(?:\[(?:\W{0,5}(?:previous|prev|next)\b[^\]\n]{0,200}|[←→«»‹›][^\]\n]{0,200}|[^\]\n]{1,200}[→»›])\]\([^)\n]{0,500}\)[ \t|·]{0,9}){1,2}$\n?"
)
_PATH = re.compile(
    r"\A\s*\[[^\]\n]{1,100}\]\([^)\n]{0,500}\)(?: {0,3}[>›»/] {0,3}\[?[^\n>›»/\]]{1,100}(?:\]\([^)\n]{0,500}\))?){1,8}\n"
)
_PERMALINK = re.compile(
    r"(?m)^(?P<heading>#{1,6} [^\n]{0,300}?)(?P<sign>[ \t]{0,4}(?:[¶🔗⚓]|\[(?:[^\w\n\]]{0,5}|Permalink|Link)\]\([^)\n]{0,300}\))){1,3}[ \t]*$"
)
_CODE_SIGN = re.compile(r"[-#/=(){}\[\];$_<>|&\"']")
_NUMBERED = re.compile(r"^[ \t]*(\d{1,6})(?:[ \t]*[|:][ \t]?|[.)][ \t]|[ \t]|$)")


def without_furniture(prose: str) -> str:
    """Return Markdown without code, without the links and questions that a site adds to each page."""
    prose = _NEIGHBOURS.sub("", _FURNITURE.sub("", _PATH.sub("", prose)))
    return _PERMALINK.sub(lambda match: match["heading"], prose)


def without_line_numbers(code: str) -> str:
    """Return code without the numbers of its lines, if each line has the one that follows that of the line before."""
    lines = code.strip("\n").split("\n")
    numbers = [_NUMBERED.match(line) for line in lines]
    stated = [int(number[1]) if number else 0 for number in numbers]
    if len(lines) < SHORTEST_NUMBERED or not stated[0] or stated != list(range(stated[0], stated[0] + len(lines))):
        return code
    rest = [line[number.end() :] for line, number in zip(lines, numbers, strict=True) if number]
    filled = [line for line in rest if line.strip()]
    # A list of exit codes has hardly any signs of code, and no word with which its lines begin.
    is_code = 2 * sum(map(bool, map(_CODE_SIGN.search, filled))) >= len(filled) or 2 * len(_beginnings(filled)) <= len(
        filled
    )
    return dedent("\n".join(rest)) if filled and is_code else code


def _beginnings(lines: list[str]) -> set[str]:
    return {line.split()[0] for line in lines}
