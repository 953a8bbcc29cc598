"""Log records of one service, grouped by their text without numbers and ids, and chunks of a long log.

Chunks are neighbouring lines that speak of one thing (RCAgent, algorithm 1, lines 1 to 10).

The chunks are communities of a weighted graph, found by the Louvain method (Blondel et al. 2008).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise
from math import exp
from typing import cast
from zlib import crc32

import numpy as np
from drain3.drain import Drain, LogCluster  # pyright: ignore[reportMissingTypeStubs]  # it has none
from numpy.typing import NDArray

from core.knowledge.terms import terms
from core.model.text import load_json
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
FIELDS_OF_REASON = (
    *(
        "error",
        "err",
        "exception",
        "errors",
        "cause",
        "details",
        "detail",
        "reason",
        "stack_trace",
        "exception.message",
    ),
    *("error_description", "title"),
)
MAX_DEPTH = 8  # of the objects in a record
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
        return _told_in(_document(text[start:])).replace("\n", " ")
    pairs = list(_PAIR.finditer(text)) if "msg=" in text or "level=" in text else []
    fields = {each["key"]: (each["quoted"] or each["bare"] or "").replace('\\"', '"') for each in pairs}
    return _told_in(fields).replace("\n", " ")


def _document(text: str) -> object:
    """Return a JSON document; None if a text is none."""
    try:
        return load_json(text)
    except ValueError:
        return None


def _told_in(value: object, depth: int = MAX_DEPTH) -> str:
    """Return what a value of a record says: of an object its text and its reason, which may be objects or JSON themselves.

    An error that wraps another one, in whichever fields, so ends with the innermost.
    """
    if isinstance(value, str) and value[:1] in ("{", "["):
        value = _document(value) or value
    if isinstance(value, list):
        value = next(iter(cast("list[object]", value)), None)
    if not isinstance(value, dict) or not depth:
        return value if isinstance(value, str) and value not in ("None", "null") else ""
    fields = {str(key).lower(): each for key, each in cast("dict[object, object]", value).items()}
    parts = [
        next((text for key in keys if (text := _told_in(fields.get(key), depth - 1))), "")
        for keys in (FIELDS_OF_TEXT, FIELDS_OF_REASON)
    ]
    return ": ".join(dict.fromkeys(filter(None, parts)))


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
    return tuple(dict.fromkeys(_frames(text[:MAX_TRACE])))[:MAX_FRAMES]


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


HASHED = 512  # columns that terms share, as many as an embedding has
NEGLIGIBLE = 1e-6  # weight of an edge that changes no cluster
APART = 13  # lines that two lines may be apart (line 4): of others, exp(-d) is negligible
REPEATED = 3  # lines of one template that are kept of a long log, the first ones
MAX_KEPT = 3_000  # lines that are partitioned, which takes a second
SHORT = 2_000  # lines of a log from which repetitions are left out


@dataclass(frozen=True, slots=True)
class Chunk:
    """Lines of a log. `rarity` is above 0, the more for lines that occur seldom."""

    lines: tuple[str, ...]
    rarity: float

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def chunked(lines: Sequence[str], vectors: NDArray[np.float32] | None = None) -> list[Chunk]:
    """Return the lines in chunks, in their order and without a gap.

    Of a log above SHORT lines, near-duplicates are left out: of each template, only the first REPEATED lines are kept, and
    of all lines the MAX_KEPT with the rarest templates. `vectors` has a row of unit length for each of
    `templates_of(lines)`, which are embedded once; without them, the terms stand for the meaning.
    """
    if not lines:
        return []
    names = templates_of(lines)
    number_of = {name: number for number, name in enumerate(names)}
    numbers = np.array([number_of[masked(line)] for line in lines])
    counts = np.bincount(numbers, minlength=len(names))
    places = np.arange(len(lines)) if len(lines) <= SHORT else _without_repetitions(numbers)
    rarest = np.argsort(counts[numbers[places]], kind="stable")[:MAX_KEPT]
    kept: list[int] = np.sort(places[rarest]).tolist()
    labels = communities(len(kept), _edges(numbers[kept], _embedded(names, vectors)))  # line 8
    rarities: list[float] = (1.0 / counts[numbers]).tolist()
    spans = (kept[start:end] for start, end in _spans(labels))
    return [Chunk(tuple(lines[place] for place in span), sum(rarities[place] for place in span)) for span in spans]


def templates_of(lines: Sequence[str]) -> list[str]:
    """Return the distinct lines without their numbers, in order of their first appearance, to be embedded."""
    return list(dict.fromkeys(masked(line) for line in lines))


def _without_repetitions(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of the first REPEATED lines of each template, in order."""
    by_template = np.argsort(numbers, kind="stable")
    ordered = numbers[by_template]
    first_of_template = np.searchsorted(ordered, ordered, side="left")
    return np.sort(by_template[np.arange(len(ordered)) - first_of_template < REPEATED])


def _embedded(names: Sequence[str], vectors: NDArray[np.float32] | None) -> NDArray[np.float32]:
    """Return the vectors of the templates, else their TF-IDF weights, in rows of unit length; zeros without words."""
    if vectors is not None:
        return vectors
    weights = np.zeros((len(names), HASHED), np.float32)
    for row, name in zip(weights, names, strict=True):
        np.add.at(row, np.array([crc32(term.encode()) % HASHED for term in terms(name.replace(MASK, " "))], int), 1)
    weights *= np.log((1 + len(names)) / (1 + np.count_nonzero(weights, axis=0))) + 1
    return weights / np.maximum(np.linalg.norm(weights, axis=1, keepdims=True), np.finfo(np.float32).tiny)


def _edges(numbers: NDArray[np.int64], vectors: NDArray[np.float32]) -> Iterator[tuple[int, int, float]]:
    """Yield pairs of lines, weighted by likeness and nearness (lines 3 to 7)."""
    for step in range(1, APART + 1):
        if step >= len(numbers):
            return
        weights: list[float] = (_likeness(numbers[:-step], numbers[step:], vectors) * exp(-step)).tolist()
        for left, weight in enumerate(weights):
            if weight >= NEGLIGIBLE:
                yield left, left + step, weight


def _likeness(one: NDArray[np.int64], other: NDArray[np.int64], vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the cosine of each pair of templates, in [0, 1]. Every pair is computed once, however often it occurs."""
    pairs, which = np.unique(np.column_stack([one, other]), axis=0, return_inverse=True)
    cosines = np.asarray((vectors[pairs[:, 0]] * vectors[pairs[:, 1]]).sum(axis=1), dtype=np.float64)
    cosines[pairs[:, 0] == pairs[:, 1]] = 1.0
    return np.clip(cosines, 0.0, 1.0)[which.reshape(-1)]


def _spans(labels: Sequence[int]) -> list[tuple[int, int]]:
    """Return start and end of each run of equal labels. A shorter run between two of one label parts nothing (line 9)."""
    runs: list[tuple[int, int]] = []  # label and length
    for label, members in groupby(labels):
        length = sum(1 for _ in members)
        if len(runs) > 1 and runs[-2][0] == label and runs[-1][1] <= min(runs[-2][1], length):
            length += runs.pop()[1] + runs.pop()[1]
        runs.append((label, length))
    return list(pairwise([0, *accumulate(length for _, length in runs)]))


MAX_PASSES = 20  # over all nodes of one level; later ones move almost nothing
LEAST_GAIN = 1e-12

Graph = Sequence[
    dict[int, float]
]  # by node: the weight of the edge to each neighbour; to itself: of all edges inside it


def communities(count: int, edges: Iterable[tuple[int, int, float]]) -> list[int]:
    """Return the community of each of `count` nodes. Equal graphs have equal communities."""
    graph: list[dict[int, float]] = [{} for _ in range(count)]
    for one, other, weight in edges:
        graph[one][other] = graph[one].get(other, 0.0) + weight
        graph[other][one] = graph[other].get(one, 0.0) + weight
    members = list(range(count))
    while True:
        labels = _moved(graph)
        size = len(set(labels))
        if size == len(graph):
            return members
        members = [labels[member] for member in members]
        graph = _contracted(graph, labels, size)


def _moved(graph: Graph) -> list[int]:
    """Return the community of each node, from 0, after moving nodes while that increases the modularity."""
    degrees = [sum(edges.values()) for edges in graph]
    total = sum(degrees) or 1.0
    labels, weights = list(range(len(graph))), list(degrees)
    for _ in range(MAX_PASSES):
        has_moved = False
        for node, edges in enumerate(graph):
            own = labels[node]
            weights[own] -= degrees[node]
            near: defaultdict[int, float] = defaultdict(float)
            for other, weight in edges.items():
                if other != node:
                    near[labels[other]] += weight
            gains = {label: weight - degrees[node] * weights[label] / total for label, weight in near.items()}
            best, stay = max(gains, key=gains.__getitem__, default=own), gains.get(own, 0.0)
            labels[node] = best if gains.get(best, 0.0) > stay + LEAST_GAIN else own
            weights[labels[node]] += degrees[node]
            has_moved = has_moved or labels[node] != own
        if not has_moved:
            break
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    return [numbers[label] for label in labels]


def _contracted(graph: Graph, labels: Sequence[int], size: int) -> list[dict[int, float]]:
    """Return the graph whose nodes are the communities."""
    contracted: list[dict[int, float]] = [{} for _ in range(size)]
    for node, edges in enumerate(graph):
        into = contracted[labels[node]]
        for other, weight in edges.items():
            into[labels[other]] = into.get(labels[other], 0.0) + weight
    return contracted
