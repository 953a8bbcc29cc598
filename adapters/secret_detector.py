"""Passwords, keys and tokens: the formats of well-known issuers, and values that a text calls a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from adapters.secret_formats import ISSUED

# Formats without a prefix, recognised by the text near them.
_NEAR = (
    re.compile(r"(?i:artif|jfrog|buildkit).{0,100}[\s=:\"](AP[0-9A-F][A-Za-z0-9]{8,200})(?=[\s\"]|$)"),
    re.compile(r"(?i:aws).{0,20}(?i:key|pwd|pw|password|pass|token).{0,20}?\b([0-9A-Za-z/+]{40})(?![0-9A-Za-z/+])"),
    re.compile(r"(?<![A-Za-z0-9+/])(?<!sha512-)([A-Za-z0-9+/]{86,88}==)"),  # Azure's storage
    re.compile(r"https://hooks\.slack\.com/services/(T\w+/B\w+/\w+)", re.IGNORECASE),
    re.compile(r"://[^\s:/?#@]{1,200}:([^\s:/?#@$&'()*+,;=!\[\]]{1,200})@"),
    re.compile(r"://([0-9a-f]{32})(?::\w{0,40})?@[\w.-]{1,200}/\d"),  # Sentry's address of a project
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
_NAMES_OF_PASSWORDS = (
    r"(?:password|passwd|passphrase|passcode|passwort|kennwort|contraseña|(?<![A-Za-z])(?:pwd|pw)|_pass)"
)
_KEY = (
    r"(?:(?:api|access|auth|secret|account|client|private|maps|encryption|signing|license)[ _.-]?key(?:_base)?|"
    r"secret|token|cookie|(?<![A-Za-z])sid)"
)
_NAME = rf"(?P<name>(?P<password>{_NAMES_OF_PASSWORDS})|{_KEY})"
_QUOTE = r"\\{0,3}[\"'`]"
_VALUE = rf"(?P<quote>(?:{_QUOTE})?)(?P<value>(?:(?!</)[^\s\"'`\\]|\\(?![\\\"'`nrt])){{4,}}+)"
_SEPARATOR = (
    r"(?:[*_]{0,3}(?:[ \t]{0,40}(?::=|=>|[:=→—–](?!:)|(?P<cell>\|))|(?P<prose> (?:is|was|lautet) ))[*_]{0,3}[ \t]{0,40}|"
    r"(?P<below>[*_]{0,3}:[*_]{0,3}[ \t]{0,40}(?:[>|][+-]?)?\r?\n(?:[ \t]{0,40}\r?\n)?(?:```\w*\n)?[ \t]{0,40})|"
    r"[,;]?\s{1,40}[\"']?value[\"']?\s{0,9}[:=]\s{0,9}|"  # a pair of elements or attributes
    r"(?P<element>(?:>|</(?:t[dh]|dt)>)(?:\s{0,40}<\w[^<>]{0,80}>){0,3}\s{0,9}))"
)
_ASSIGNED = re.compile(
    rf"{_NAME}(?: for \w+(?: \w+)?)?(?:{_QUOTE}|\])?{_SEPARATOR}{_VALUE}(?=(?P<rest>[^\n]?[^\n]?))", re.IGNORECASE
)
_OPTION = re.compile(
    rf"(?<!\S)--?[\w-]*?{_NAME}[ =](?P<prose>){_VALUE}(?=(?P<rest>)(?:[\"'`]|[ \t]*$|\s+-|\s+[^\s./:]{{0,100}}[./:])|)",
    re.IGNORECASE,
)
_HEADING = re.compile(rf"(?:[^\W_]{{1,40}}[ _.-]){{0,3}}{_NAME}s?", re.IGNORECASE)
_TABLE = re.compile(
    r"^(?P<head>[^\n]{0,400}\|[^\n]{0,400})\n[ \t]{0,3}\|?[ \t]{0,9}:?-{3}[ \t:|-]{0,400}\n(?P<rows>(?:[^\n|]{0,400}\|[^\n]{0,2000}(?:\n|\Z))+)",
    re.MULTILINE,
)
_CELL = re.compile(r"[^|\n]+")
_IN_COMMAND = re.compile(
    r"\bcurl\b[^\n]{0,300}? (?:-u|--user)[ =]?[\"']?[^\s:\"']{1,100}:(?P<curl>[^\s\"'`]+)|"
    r"\bmysql(?:dump|admin)?\b[^\n]{0,300}? -p[\"']?(?P<mysql>[^\s\"'`]{4,})|"
    r"\b(?:(?:docker|podman|helm registry|az acr|az|nerdctl|skopeo|buildah) login|mongosh?|mongodump)\b[^\n]{0,300}? -p[ =]?[\"']?(?P<login>[^\s\"'`-][^\s\"'`]{3,})|"
    r"\bredis-cli\b[^\n]{0,300}? (?:-a|--pass)[ =]?[\"']?(?P<redis>[^\s\"'`]{4,})|"
    r"\bldap(?:search|modify|add|passwd|whoami)\b[^\n]{0,300}? -w[ =]?[\"']?(?P<ldap>[^\s\"'`]{4,})|"
    r"\bsqlcmd\b[^\n]{0,300}? -P ?[\"']?(?P<sqlcmd>[^\s\"'`]{4,})|"
    r"\b(?:smbclient|rpcclient)\b[^\n]{0,300}? -U ?[\"']?[^\s%]{1,100}%(?P<smb>[^\s\"'`]{4,})|"
    r"\b(?:add_user|change_password) +[^\s]{1,100} +[\"']?(?P<account>[^\s\"'`]{4,})|"
    r"\b(?:requirepass|masterauth) +[\"']?(?P<server>[^\s\"'`]{4,})|"
    r"-pass(?:in|out)? +pass:(?P<openssl>[^\s\"'`]{4,})|--creds[ =][^\s:]{1,100}:(?P<creds>[^\s\"'`]{4,})|"
    r"\b(?:IDENTIFIED BY|PASSWORD) +'(?P<sql>[^\s']{4,})'|"
    r"\bAuthorization[\"']?: *[\"']?(?:token|ApiKey|Api-Key|Key|Digest|Negotiate|GenieKey) +(?P<scheme>[\w.~+/=-]{8,})|"
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
_NO_PASSWORD = re.compile(
    "args|bool|boolean|bytes|changed?|config|credentials?|default|disabled|empty|enabled|encrypted|expired|false|forgotten|"
    "getpass|hidden|incorrect|input|integer|invalid|masked|missing|never|none|null|number|optional|password|prompt|redacted|"
    "required|reset|rotated|secret|sensitive|settings|strict|string|text|token|true|undefined|unknown|unset|username|value|"
    "vault|wrong",
    re.IGNORECASE,
)
"""Words that stand in the place of a password and are none."""
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
        spans = [match.span() for match in (*_PRIVATE_KEY.finditer(text), *ISSUED.finditer(text))]
        for piece in PIECE.finditer(text):
            spans += ((piece.start() + start, piece.start() + end) for start, end in _in_piece(piece[0]))
        return _merged(spans)


def _in_piece(text: str) -> Iterator[tuple[int, int]]:
    yield from (match.span(1) for pattern in _NEAR for match in pattern.finditer(text))
    for pattern in (_ASSIGNED, _OPTION):
        for match in pattern.finditer(text):
            yield from _value(match["value"], match.start("value"), match)
    yield from _in_columns(text)
    yield from _in_commands(text)


def _in_columns(text: str) -> Iterator[tuple[int, int]]:
    """Yield the cells of a table below a heading that calls them secret."""
    for table in _TABLE.finditer(text):
        named = [_HEADING.fullmatch(cell[0].strip(" *_`")) for cell in _CELL.finditer(table["head"].strip(" |"))]
        for row in table["rows"].splitlines(keepends=True) if any(named) else ():
            at = table.start("rows") + table["rows"].index(row)
            start = len(row) - len(row.lstrip(" |"))
            for heading, cell in zip(named, _CELL.finditer(row, start), strict=False):
                word = cell[0].strip(" *`\n")
                if heading and " " not in word:
                    yield from _value(word, at + cell.start() + cell[0].index(word), heading)


def _value(value: str, start: int, match: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the place of a value that the text calls a secret, if it looks like one."""
    parts = match.groupdict()
    if parts.get("cell"):
        value = value.partition("|")[0]
    elif parts.get("element"):
        value = value.partition("<")[0]
    end = _END.search(value)
    value = value[: end.start()] if end else value
    if value and not _REFERENCE.search(value) and _looks_secret(value, parts):
        yield start, start + len(value)


def _looks_secret(value: str, match: Mapping[str, str | None]) -> bool:
    """Return whether a value looks like a secret. Plain words (unless a whole password) and resource names do not."""
    if match["password"]:
        if match.get("quote") and _PHRASE.match(value):
            return True
        return len(value) >= MIN_PASSWORD and (
            (_is_mixed(value) and not (match.get("prose") is not None and _IDENTIFIER.match(value)))
            or (_stands_alone(match) and value.isalpha() and not _NO_PASSWORD.fullmatch(value))
        )
    name = (match.get("name") or "").lower()
    if name.startswith(("sid", "cookie")):
        return len(value) >= 2 * MIN_TOKEN and _is_mixed(value)
    is_uuid = len(value) == 36 and value.count("-") == 4
    return len(value) >= MIN_TOKEN and _is_mixed(value) and (is_uuid or not _IDENTIFIER.match(value))


def _stands_alone(match: Mapping[str, str | None]) -> bool:
    """Return whether nothing follows the value in its line or quotes, so that it is no word of a sentence."""
    if match.get("below") is not None or match.get("rest") is None:
        return False
    rest = str(match["rest"]).strip()
    return bool(match["quote"]) or not rest or match.get("cell") is not None or rest.startswith("<")


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
