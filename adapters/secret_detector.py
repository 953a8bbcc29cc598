"""Passwords, keys and tokens: the formats of well-known issuers, and values that a text calls a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Each begins with the prefix of its issuer's tokens.
_ISSUED = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[A-Z0-9]{16}\b|AKC[A-Za-z0-9]{10,200}|npm_[A-Za-z0-9]{36}|gh[pousr]_\w{36,}|"
    r"xox[a-z]-(?:\d+-)+[A-Za-z0-9]+|SG\.[\w-]{22}\.[\w-]{43}|sq0[a-z]{3}-[\w-]{22,43}|[rs]k_(?:live|test)_[0-9A-Za-z]{24,}|"
    r"(?:AC|SK)[0-9a-z]{32}|[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27}|[0-9a-z]{32}-us\d{1,2}|"
    r"(?<![\w=-])eyJ[\w=-]+\.[\w=-]+(?:\.[\w.+/=-]*)?|github_pat_\w{40,}|glpat-[\w-]{20,}|glrt-[\w-]{20,}|sk-(?:proj-|ant-|svcacct-)?[\w-]{32,}|AIza[\w-]{35}|"
    r"pypi-[\w-]{50,}|hf_[A-Za-z]{30,}|hv[sbr]\.[\w-]{20,}|dop_v1_[a-f0-9]{64}|xapp-\d-[\w-]{20,}|"
    r"\d{8,10}:AA[\w-]{33}|ATATT3[\w-]{50,}=?[A-F0-9]{0,8}|shp(?:at|ss)_[a-fA-F0-9]{32}|ya29\.[\w-]{40,})"
)
# Formats without a prefix, recognised by the text near them.
_NEAR = (
    re.compile(r"(?i:artif|jfrog|buildkit).{0,100}[\s=:\"](AP[0-9A-F][A-Za-z0-9]{8,200})(?=[\s\"]|$)"),
    re.compile(r"(?i:aws).{0,20}(?i:key|pwd|pw|password|pass|token).{0,20}?\b([0-9A-Za-z/+]{40})(?![0-9A-Za-z/+])"),
    re.compile(r"(?<![A-Za-z0-9+/])([A-Za-z0-9+/]{86,88}==)"),  # Azure's storage
    re.compile(r"https://hooks\.slack\.com/services/(T\w+/B\w+/\w+)", re.IGNORECASE),
    re.compile(r"://[^\s:/?#@]{1,200}:([^\s:/?#@$&'()*+,;=!\[\]]{1,200})@"),
    # IBM's cloud services: a key without a prefix, after its name.
    re.compile(
        r"(?i:key|pwd|pass(?:word)?|token)[\"'\]]{0,2} {0,4}(?::=|=>|::|[=: ]) {0,4}[\"']?"
        r"((?:[0-9a-f]{48}|[0-9a-z]{64}|[A-Za-z0-9_-]{44})(?![A-Za-z0-9_-]))"
    ),
    re.compile(r"(?:NPM[ _-]?TOKEN|_authToken)\W{1,5}(?:NpmToken\.)?([a-z0-9-]{36})", re.IGNORECASE),
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
_NAMES_OF_PASSWORDS = r"(?:password|passwd|passphrase|passwort|kennwort|contraseña|(?<![A-Za-z])(?:pwd|pw)|_pass)"
_KEY = (
    r"(?:(?:api|access|auth|secret|account|client|private|maps|encryption|signing|license)[ _.-]?key(?:_base)?|"
    r"secret|token|cookie|(?<![A-Za-z])sid)"
)
_VALUE = r"[ \t]*(?P<quote>[\"'`]?)(?P<value>[^\s\"'`]{4,})"
_ASSIGNED = re.compile(
    rf"(?:(?P<password>{_NAMES_OF_PASSWORDS})|{_KEY})(?: for \w+(?: \w+)?)?[\"'`]?[ \t]*(?::=|=>|[:=]|(?P<prose> (?:is|was|lautet) )){_VALUE}",
    re.IGNORECASE,
)
_OPTION = re.compile(
    rf"(?<!\S)--?[\w-]*?(?:(?P<password>{_NAMES_OF_PASSWORDS})|{_KEY})[ =](?P<prose>){_VALUE}", re.IGNORECASE
)
_IN_COMMAND = re.compile(
    r"\bcurl\b[^\n]{0,300}? (?:-u|--user)[ =][\"']?[^\s:\"']{1,100}:(?P<curl>[^\s\"'`]+)|"
    r"\bmysql(?:dump|admin)?\b[^\n]{0,300}? -p(?P<mysql>[^\s\"'`]{4,})|"
    r"\bsshpass -p *[\"']?(?P<sshpass>[^\s\"'`]+)|"
    r"\b(?:Bearer|Basic) +(?P<header>[A-Za-z0-9._~+/-]{16,}=*)|"
    r"://[^\s/@:]{0,100}:(?P<userinfo>[^\s/@]{3,200})@|"
    r"(?<!\S)root +/ +(?P<console>\S{6,})"
)
# Texts are searched in pieces, because a pattern may take quadratic time.
PIECE = re.compile(r".{1,4000}(?!\S)|\S{1,20000}", re.DOTALL)
_MARK = re.compile(r"[^\w./:-]")  # occurs in no word or name
MIN_PASSWORD = 6  # characters
MIN_TOKEN = 8  # characters
_END = re.compile(
    r";(?:\s|\w+=|$)|&(?:\w+[=;])|(?<![.,;)|])[.,;)|]+$"
)  # the end of a value: `a=1;b=2`, `?a=1&b=2`, a full stop
_REFERENCE = re.compile(
    r"""^(?:[$<{%*(\[-]|/|\.{1,2}/|~/|https?:|file:|vault:|op:|arn:|secret/|env[.(:]|os\.|process\.|sha\d+:)|"""
    r"""[>})\]]$|^x{3,}$|\.(?:ya?ml|json|pem|crt|txt|env|sh)$|\(|^v?\d+(?:\.\d+)+$|"""
    r"""^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$|^[a-z]+(?:[._][a-z]+)+$""",
)
"""A value that refers to a secret or is none: a variable, template, path, file, option or version."""

_IDENTIFIER = re.compile(r"^[a-z0-9]+(?:-[a-z0-9]+)+$")
_PHRASE = re.compile(r"^[a-z]{3,}(?:[-_ ][a-z]{3,}){2,}$")


class SecretPatterns:
    """Implements `core.ports.SecretDetector`. Nothing is verified over the network."""

    def find(self, text: str) -> list[tuple[int, int]]:
        spans = [match.span() for match in (*_PRIVATE_KEY.finditer(text), *_ISSUED.finditer(text))]
        for piece in PIECE.finditer(text):
            spans += ((piece.start() + start, piece.start() + end) for start, end in _in_piece(piece[0]))
        return _merged(spans)


def _in_piece(text: str) -> Iterator[tuple[int, int]]:
    yield from (match.span(1) for pattern in _NEAR for match in pattern.finditer(text))
    yield from _named(_ASSIGNED, text)
    yield from _named(_OPTION, text)
    yield from _in_commands(text)


def _named(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Yield values that the text calls a secret, and that look like one."""
    for match in pattern.finditer(text):
        end = _END.search(match["value"])
        value = match["value"][: end.start()] if end else match["value"]
        if value and not _REFERENCE.search(value) and _looks_secret(value, match):
            yield match.start("value"), match.start("value") + len(value)


def _looks_secret(value: str, match: re.Match[str]) -> bool:
    """Return whether a value looks like a secret. Plain words (unless a quoted phrase) and resource names do not."""
    if match["password"]:
        if match["quote"] and _PHRASE.match(value):
            return True
        return len(value) >= MIN_PASSWORD and _is_mixed(value) and not (match["prose"] and _IDENTIFIER.match(value))
    if "sid" in match[0][:3].lower() or "cookie" in match[0][:6].lower():
        return len(value) >= 2 * MIN_TOKEN and _is_mixed(value)
    is_uuid = len(value) == 36 and value.count("-") == 4
    return len(value) >= MIN_TOKEN and _is_mixed(value) and (is_uuid or not _IDENTIFIER.match(value))


def _in_commands(text: str) -> Iterator[tuple[int, int]]:
    for match in _IN_COMMAND.finditer(text):
        name = str(match.lastgroup)
        if not _REFERENCE.search(match[name]) and (name != "console" or _is_mixed(match[name])):
            yield match.span(name)


def _is_mixed(value: str) -> bool:
    """Return whether a value has letters together with digits or special characters."""
    return any(map(str.isalpha, value)) and (any(map(str.isdigit, value)) or bool(_MARK.search(value)))


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged = list[tuple[int, int]]()
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
