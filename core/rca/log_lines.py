"""Log records of one service, grouped by their text without numbers and ids; and functions and files in a stack trace."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import cast

from drain3.drain import Drain, LogCluster  # pyright: ignore[reportMissingTypeStubs]  # it has none

from core.model.lenient_formats import load_json
from core.ports import LogLine

DEPTH = 4  # of Drain's parse tree (He et al. 2017, section III)
SIMILARITY = 0.5  # share of equal tokens from which two messages have one template
MAX_CHILDREN = 60  # branches per node of the parse tree
MAX_TEMPLATES = 2_000  # per service; beyond that, the least recently used is dropped
MAX_MESSAGE = 400  # characters compared of a record

WILDCARD = "<*>"  # for the varying parts of a template
MASK = "<:VAR:>"  # in a message; an ordinary word for Drain, so that masked parts are equal

_SPACE = re.compile(r"\s")
_VARIABLE = re.compile(r"\d[\w.:%-]*")  # from the first digit on: numbers, times, addresses, ids, sizes with their unit
ROOT_CAUSE = re.compile(
    r"^[^\S\n]*+(?:Caused by:[^\S\n]*+)?[\w.$]*(?:Error|Exception|Failure|Fault|Panic)\b.*", re.MULTILINE
)
_PACKAGE = re.compile(r"^(?:Caused by:\s{1,9})?(?:[a-z_]\w{0,60}\.){1,12}+(?=[A-Z])")


@dataclass(slots=True)
class Template:
    """The records of one template, in order of time. `text` has WILDCARD for what varies."""

    text: str
    level: str
    lines: list[LogLine] = field(default_factory=list[LogLine])


def grouped(lines: Iterable[LogLine]) -> list[Template]:
    """Return the templates of one service's records. A record of several lines is one message (RCAgent, section 3.2).

    Drain processes records that are equal after masking only once.
    """
    drain = Drain(
        depth=DEPTH,
        sim_th=SIMILARITY,
        max_children=MAX_CHILDREN,
        max_clusters=MAX_TEMPLATES,
        parametrize_numeric_tokens=True,
    )
    cluster_of: dict[tuple[str, str], int] = {}
    clusters: dict[int, LogCluster] = {}
    templates: dict[int, Template] = {}
    for line in lines:
        message = (line.level, masked(message_of(line.text)[:MAX_MESSAGE]))
        number = cluster_of.get(message)
        if number is None:
            cluster = cast("LogCluster", drain.add_log_message(" ".join(message))[0])
            number = cluster_of[message] = cluster.cluster_id
            clusters[number] = cluster
        templates.setdefault(number, Template("", line.level)).lines.append(line)
    for number, template in templates.items():
        text = cast("str", clusters[number].get_template())
        template.text = text.removeprefix(template.level).lstrip().replace(MASK, WILDCARD)
    return list(templates.values())


def masked(text: str) -> str:
    """Return the text with MASK for every number, address and id."""
    return _VARIABLE.sub(MASK, text)


FIELDS_OF_TEXT = ("message", "msg", "@message", "@m", "event", "text", "body", "log", "sample", "short_message")
FIELDS_OF_REASON = ("error", "err", "exception", "reason", "detail", "cause", "stack_trace", "exception.message")
HEAD = 60  # characters before the fields of a record, such as its time and level
_PAIR = re.compile(
    r"""(?<![\w.@-])(?P<key>[\w.@-]{1,40})=(?:"(?P<quoted>(?:[^"\\]|\\.){0,2000})"|(?P<bare>\S{1,400}))"""
)


def message_of(text: str) -> str:
    """Return the message of a record on one line, and what it says of the reason.

    Of a structured record that are its fields; of a stack trace, its first line and the innermost error.
    """
    return spoken_of(text) or "\n".join(_key_lines(text)).replace("\n", " ")


def reason_of(text: str) -> str:
    """Return what a record says failed: the innermost error of a stack trace, without its package; else its message."""
    lines = _key_lines(text)
    return _PACKAGE.sub("", lines[1]) if len(lines) > 1 else message_of(text)


def spoken_of(text: str) -> str:
    """Return “message: reason” of a record in JSON or logfmt; empty for any other text."""
    start = text.find("{", 0, HEAD)
    if start >= 0 and '"' not in text[:start]:
        try:
            given = load_json(text[start:])
        except ValueError:
            return ""
        record = cast("dict[str, object]", given) if isinstance(given, dict) else {}
        fields = {key.lower(): str(value) for key, value in record.items()}
    else:
        pairs = list(_PAIR.finditer(text)) if "msg=" in text or "level=" in text else []
        fields = {each["key"].lower(): (each["quoted"] or each["bare"] or "").replace('\\"', '"') for each in pairs}
    parts = [next((fields[key] for key in keys if fields.get(key)), "") for keys in (FIELDS_OF_TEXT, FIELDS_OF_REASON)]
    fitting = [each for each in parts if each and each not in ("None", "null", "{}", "[]")]
    return ": ".join(dict.fromkeys(fitting)).replace("\n", " ")


def quote_of(text: str) -> str:
    """Return the lines of a record to quote, verbatim: its first and, of a stack trace, the innermost error."""
    return "\n".join(_key_lines(text))[:MAX_MESSAGE]


def _key_lines(text: str) -> list[str]:
    head, _, rest = text.partition("\n")
    causes = ROOT_CAUSE.findall(rest) if rest else []
    return [head, *(cause.strip() for cause in causes[-1:])]


_PREFIX = re.compile(
    r"^\W{0,2}(?:(?:\d{4}[-/]\d\d[-/]\d\d|\d\d[-/]\w{3}[-/]\d{4})?[T :]*\d\d:\d\d:\d\d\S*[\s|:,-]*"
    r"|\[[^\]]{1,40}\]\s+(?=[A-Z]+\b)|\[?\b(?:FATAL|CRITICAL|ERROR|WARN(?:ING)?|INFO|DEBUG)\b\]?\W*|[EWIF]\d{4}\s+|\w{3} +\d+ (?=\d\d:)"
    r"|(?:- )?[\"']?message[\"']?:\s*[\"']?)",
    re.IGNORECASE,
)


def statement_of(line: str) -> str:
    """Return the message of a log line in a sentence, without its time and level."""
    text = line.strip()
    for _ in range(3):
        text = _PREFIX.sub("", text, count=1)
    return spoken(cut(text) if len(text) > MAX_QUOTE * 2 else text)


MAX_QUOTE = 300  # characters of a quote
WORDS = 36  # of a statement


def cut(text: str, around: int = 0) -> str:
    """Return at most MAX_QUOTE characters of a text around an offset, verbatim and in whole words if possible."""
    text = text.rstrip()
    if len(text) <= MAX_QUOTE:
        return text
    start = max(0, min(around - MAX_QUOTE // 3, len(text) - MAX_QUOTE))
    part = text[start : start + MAX_QUOTE]
    if start and (space := _SPACE.search(part[:40])):
        part = part[space.end() :]
    return part


def spoken(message: str, words: int = WORDS) -> str:
    """Return at most `words` words of a message: its beginning (what was tried) and its end (why it failed)."""
    tokens = message.split()
    if len(tokens) <= words:
        return " ".join(tokens)
    head = words * 3 // 5
    return " ".join([*tokens[:head], "…", *tokens[len(tokens) - (words - head - 1) :]])


MAX_FRAMES = 40  # of one record
MAX_TRACE = 20_000  # characters read of a record

_PYTHON = re.compile(
    r'^[^\S\n]*+File "(?P<path>[^"\n]{1,300})", line (?P<line>\d{1,7}), in (?P<symbol>[\w<>.]{1,200})', re.MULTILINE
)
_JAVA = re.compile(
    r"^[^\S\n]*+at (?P<symbol>[\w$.]{1,300})\.(?P<method>[\w$<>]{1,200})\((?P<file>[\w$]{1,200}\.\w{1,10}):(?P<line>\d{1,7})\)",
    re.MULTILINE,
)
_NODE = re.compile(
    r"^[^\S\n]*+at (?:(?:async |new )?(?P<symbol>[\w$.<>]{1,300}) )?\(?(?:file://)?(?P<path>[^\s():]{1,300}):(?P<line>\d{1,7}):\d{1,7}\)?",
    re.MULTILINE,
)
_GO = re.compile(
    r"^(?P<symbol>[\w./\-()*]{1,300})\([^\n]{0,300}\)\n\s+(?P<path>/?[^\s:]{1,300}\.go):(?P<line>\d{1,7})", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Frame:
    """A function that was running. `symbol` may be qualified; `path` is as in the trace, with `/` between its parts."""

    symbol: str
    path: str
    line: int


def frames(text: str) -> tuple[Frame, ...]:
    """Return the frames of the stack traces in a record: Python, Java, Go and Node.js."""
    if "\n" not in text:
        return ()
    distinct = dict.fromkeys(frame for frame in _frames(text[:MAX_TRACE]))
    return tuple(distinct)[:MAX_FRAMES]


def _frames(text: str) -> Iterator[Frame]:
    for match in _PYTHON.finditer(text):
        yield Frame(match["symbol"], match["path"].replace("\\", "/"), int(match["line"]))
    for match in _JAVA.finditer(text):
        package = match["symbol"].split(".")[:-1]
        yield Frame(f"{match['symbol']}.{match['method']}", "/".join([*package, match["file"]]), int(match["line"]))
    for match in _GO.finditer(text):
        yield Frame(match["symbol"].rpartition("/")[2], match["path"], int(match["line"]))
    for match in _NODE.finditer(text):
        yield Frame(match["symbol"] or "", match["path"], int(match["line"]))
