"""Texts that are made to be slow for a regular expression or a reader of text, and the growth of the time that they take."""

from __future__ import annotations

import ast
import gc
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from math import inf
from pathlib import Path
from re import _constants as op  # pyright: ignore[reportAttributeAccessIssue]
from re import _parser as parser  # pyright: ignore[reportAttributeAccessIssue]
from time import process_time
from typing import Any, TypeGuard

ROOT = Path(__file__).parents[1]
PACKAGES = ("core", "handlers", "adapters", "bot")
USES = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn")

LENGTH = 5_000  # characters; the longer text has twice as many
FLOOR = 0.005  # seconds of processor time that LENGTH characters may take whatever their growth
MAX_RATIO = 3.0  # of twice the text to the text: 2 is linear, 4 is quadratic
LINEAR_AT_ONCE = 2.5  # of twice the text to the text, each read once: up to here nothing is measured again
CLEARLY_LINEAR = 8.0  # of the text to a fifth of it: 5 is linear, 25 quadratic; up to here MAX_RATIO is not reached
HOPELESS = 3.0  # seconds of processor time after which no ratio is needed

# What breaks readers of text most often, whatever the pattern. Each is repeated to the whole length.
COMMON = (
    *" a0.-\n(\"'`[<_/",
    *(
        "a ",
        "a.",
        "a-",
        "\n ",
        "\n\n",
        "<!--",
        "<a",
        "<![",
        "![",
        "[a](",
        "a@",
        "://",
        "``",
        "```\n",
        "**",
        "a: ",
        "=",
        "{",
    ),
)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled regular expression of a module, and the methods of it that are called."""

    place: str
    """The module and the name, as in `core.incidents.incident_questions._HELLO`; with a position where it stands in a collection."""
    compiled: re.Pattern[Any]
    uses: frozenset[str]


def module_patterns(package: str) -> list[Pattern]:
    """Return every regular expression that a module of a package holds, alone or in a collection."""
    return [
        Pattern(f"{module}.{name}{position}", compiled, _uses(module, name))
        for module in sorted(_sources())
        if module.startswith(f"{package}.") and _imports_re(module)
        for name, value in vars(import_module(module)).items()
        if name in _assigned(module)
        for position, compiled in _patterns_in(value)
    ]


def patterns_in_functions() -> dict[str, str]:
    """Return the calls of `re` inside functions but for `re.escape`, by place."""
    found = dict[str, str]()
    for module, tree in _sources().items():
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    if isinstance(node, ast.Call) and is_pattern_call(node):
                        found[f"{module}.{function.name}"] = ast.unparse(node)
    return found


def is_pattern_call(node: ast.Call) -> bool:
    """Return whether a function of `re` is called with a regular expression."""
    called = node.func
    return (
        isinstance(called, ast.Attribute)
        and isinstance(called.value, ast.Name)
        and called.value.id in ("re", "regex")
        and called.attr in (*USES, "compile")
    )


@cache
def _sources() -> Mapping[str, ast.Module]:
    # What measures the product reads the data that the operator gives it.
    paths = (
        path
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if not {"migrations", "evaluation"} & set(path.parts)
    )
    texts = {".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text() for path in paths}
    return {
        name: ast.parse(text) for name, text in texts.items() if any(f".{use}(" in text for use in (*USES, "compile"))
    }


def _imports_re(module: str) -> bool:
    return any(
        isinstance(node, ast.Import) and any(each.name == "re" for each in node.names)
        for node in _sources()[module].body
    )


@cache
def _assigned(module: str) -> frozenset[str]:
    targets = (
        target
        for node in _sources()[module].body
        for target in (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
    )
    return frozenset(target.id for target in targets if isinstance(target, ast.Name))


# Each reads a text to its end; `search` and `match` do what these do up to the first match.
_COSTLIEST = {"findall": "finditer", "split": "finditer", "sub": "finditer", "subn": "finditer"}


def _is_use(node: ast.AST) -> TypeGuard[Any]:
    return isinstance(node, ast.Attribute) and node.attr in USES and isinstance(node.value, ast.Name)


@cache
def _called() -> Mapping[str, frozenset[tuple[str, str]]]:
    """Return for each name the methods that are called on it, with the module that does."""
    found = dict[str, set[tuple[str, str]]]()
    for module, tree in _sources().items():
        names = Counter(
            node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        )
        for node in ast.walk(tree):
            if _is_use(node):
                found.setdefault(node.value.id, set()).add((module, node.attr))
            for loop in getattr(node, "generators", ()):
                # What is done with each of a collection that nothing else reads.
                targets = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
                uses = {(module, each.attr) for each in ast.walk(node) if _is_use(each) and each.value.id in targets}
                for each in ast.walk(loop.iter):
                    if uses and isinstance(each, ast.Name) and names[each.id] == 1:
                        found.setdefault(each.id, set()).update(uses)
    return {name: frozenset(uses) for name, uses in found.items()}


def _uses(module: str, name: str) -> frozenset[str]:
    uses = {
        _COSTLIEST.get(use, use)
        for where, use in _called().get(name, ())
        if where == module or not name.startswith("_")
    }
    return frozenset(
        uses or {"finditer"}
    )  # in a collection, or handed on: any place of the text, in the worst case all of them


def _patterns_in(value: object) -> Iterator[tuple[str, re.Pattern[Any]]]:
    if isinstance(value, re.Pattern):
        yield "", value
    elif isinstance(value, Mapping):
        yield from _patterns_in(tuple(value.values()))
    elif isinstance(value, tuple | list | frozenset | set):
        for number, each in enumerate(value):
            for position, pattern in _patterns_in(each):
                yield f"[{number}]{position}", pattern


# Texts that follow from the structure of a pattern.

_PROBES = " aA1.-_\n\t<>()[]{}`\"'/\\:;,=|#*@+!?&$%~^é中⟨😀"


def adversarial_texts(pattern: re.Pattern[Any]) -> list[tuple[str, str, str]]:
    """Return beginnings, pumps and ends: a slow text is the beginning, the pump as often as it fits, and the end."""
    parsed = parser.parse(
        pattern.pattern, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    )
    found = dict.fromkeys(("", pump, end) for pump in COMMON for end in ("", "\0"))
    for before, pump in _pumped(parsed, ""):
        for end in ("\0", ""):
            found["", pump, end] = None
            if before:
                found[before, pump, end] = None
                found["", before + pump, end] = None
    whole = _sample(parsed)
    if whole:
        found.update(dict.fromkeys([("", whole, "\0"), ("", whole[:-1] or whole, ""), ("", whole + " ", "")]))
    return list(found)


def _pumped(parsed: Iterable[Any], before: str) -> Iterator[tuple[str, str]]:
    """Yield for each repetition what may stand before it and what it repeats."""
    for code, value in parsed:
        if code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            _least, most, body = value
            if most > 50:
                for pump in _samples(body):
                    yield before, pump
            yield from _pumped(body, before)
        else:
            for inner in _inner(code, value):
                yield from _pumped(inner, before)
        before += _sample([(code, value)])


def _inner(code: Any, value: Any) -> list[Any]:
    if code is op.SUBPATTERN:
        return [value[-1]]
    if code is op.BRANCH:
        return list(value[1])
    if code is op.ATOMIC_GROUP:
        return [value]
    if code in (op.ASSERT, op.ASSERT_NOT):
        return [value[1]]
    return []


def _samples(parsed: Any) -> list[str]:
    """Return texts that the expression matches: every probe for one character, else one text, for each alternative."""
    items = list(parsed)
    if len(items) == 1:
        code, value = items[0]
        if code in (op.IN, op.ANY, op.NOT_LITERAL):
            return _characters(code, value)[:8]
        if code in (op.SUBPATTERN, op.BRANCH, op.ATOMIC_GROUP):
            return [each for inner in _inner(code, value) for each in _samples(inner)]
    text = _sample(items)
    return [text] if text else []


def _sample(parsed: Iterable[Any]) -> str:
    text = ""
    for code, value in parsed:
        if code is op.LITERAL:
            text += chr(value)
        elif code in (op.IN, op.ANY, op.NOT_LITERAL):
            text += (_characters(code, value) or [""])[0]
        elif code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            text += _sample(value[2]) * max(1, min(value[0], 8))
        elif code in (op.SUBPATTERN, op.BRANCH, op.ATOMIC_GROUP):
            text += _sample(_inner(code, value)[0])
    return text


def _characters(code: Any, value: Any) -> list[str]:
    if code is op.ANY:
        return [each for each in _PROBES if each != "\n"]
    if code is op.NOT_LITERAL:
        return [each for each in _PROBES if ord(each) != value]
    negated = value[0][0] is op.NEGATE
    own = [chr(each) for kind, each in value if kind is op.LITERAL]
    own += [chr(each[0]) for kind, each in value if kind is op.RANGE]
    wanted = [each for each in _PROBES if _within(each, value) != negated]
    return wanted if negated else list(dict.fromkeys([*wanted, *own]))


_CATEGORIES: Mapping[Any, Callable[[str], bool]] = {
    op.CATEGORY_DIGIT: str.isdigit,
    op.CATEGORY_NOT_DIGIT: lambda each: not each.isdigit(),
    op.CATEGORY_SPACE: str.isspace,
    op.CATEGORY_NOT_SPACE: lambda each: not each.isspace(),
    op.CATEGORY_WORD: lambda each: each.isalnum() or each == "_",
    op.CATEGORY_NOT_WORD: lambda each: not (each.isalnum() or each == "_"),
}


def _within(character: str, members: Any) -> bool:
    return any(
        (kind is op.LITERAL and ord(character) == value)
        or (kind is op.RANGE and value[0] <= ord(character) <= value[1])
        or (kind is op.CATEGORY and _CATEGORIES[value](character))
        for kind, value in members
    )


# Time.


def growth_of(read: Callable[[str], object], text: tuple[str, str, str], *, hopeless: float = HOPELESS) -> float:
    """Return the time of twice LENGTH characters divided by that of LENGTH, the least of several each.

    It is 0 where LENGTH characters take less than FLOOR or clearly no more than in proportion, and infinite where one
    reading takes longer than `hopeless` seconds.
    """

    def made(length: int) -> str:
        before, pump, end = text
        return before + pump * ((length - len(before) - len(end)) // len(pump)) + end

    # A fifth of the text first: what is quadratic and above FLOOR takes a twenty-fifth of the time for it.
    fifth = made(LENGTH // 5)
    if (least := _seconds(read, fifth, hopeless)) < FLOOR / 25:
        return 0.0
    short, long = made(LENGTH), made(2 * LENGTH)
    least = min(least, _seconds(read, fifth, hopeless))
    first = _seconds(read, short, hopeless)
    if first == inf or first < max(FLOOR, CLEARLY_LINEAR * least):
        return inf if first == inf else 0.0
    twice = _seconds(read, long, hopeless)
    if twice == inf or twice < LINEAR_AT_ONCE * first:
        return inf if twice == inf else 0.0
    # A processor that others share is slowed for a moment: what is quadratic is so whenever it is measured.
    return min(_ratio(read, short, long, hopeless) for _ in range(3))


def _ratio(read: Callable[[str], object], short: str, long: str, hopeless: float) -> float:
    """Return the time of the longer text divided by that of the shorter, the least of three each, read in turn."""
    pairs = [(_seconds(read, short, hopeless), _seconds(read, long, hopeless)) for _ in range(3)]
    shorter = min(first for first, _ in pairs)
    return min(second for _, second in pairs) / shorter if shorter > FLOOR else 0.0


def _seconds(read: Callable[[str], object], text: str, hopeless: float) -> float:
    """Return the processor time of one reading, infinite if it was ended."""
    with _processor_time(hopeless), _no_collection():
        began = process_time()
        read(text)
        return process_time() - began
    return inf


class _TooLongError(Exception):
    pass


@contextmanager
def _processor_time(seconds: float) -> Iterator[None]:
    """End the block after so much processor time of this process; regular expressions can be interrupted by a signal."""

    def end(*_: object) -> None:
        raise _TooLongError

    previous = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    except _TooLongError:
        pass
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the garbage collector, whose time grows with everything that there is, out of the block."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def reader(compiled: re.Pattern[Any], use: str) -> Callable[[str], object]:
    """Return a function that applies the expression as the product does."""
    is_bytes = isinstance(compiled.pattern, bytes)

    def read(text: str) -> object:
        given = text.encode(errors="replace") if is_bytes else text
        match use:
            case "sub" | "subn":
                return compiled.sub(b"" if is_bytes else "", given)
            case "finditer":
                return sum(1 for _ in compiled.finditer(given))
            case _:
                return getattr(compiled, use)(given)

    return read
