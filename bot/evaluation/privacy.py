"""`plumbline eval privacy`: measure whether everything confidential is removed, and nothing else.

A case is a line of text in which confidential parts are marked ⟦kind|text⟧ (n name, e e-mail, p phone, s secret). A
secret is written as the name of its format (`{{github}}`) and generated when the file is read, so that no file contains
anything like a key. The first line of the file names the people whom the source knows.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from adapters.secret_detector import SecretPatterns
from bot.evaluation.report import SEED, bootstrap_interval, print_whole
from core.knowledge.names import People
from core.knowledge.redactor import Finding, Redactor
from core.model.errors import MalformedInput

KINDS = {"n": "name", "e": "e-mail", "p": "phone", "s": "secret"}

_LABEL = re.compile(r"⟦(?P<kind>[neps])\|(?P<text>.*?)⟧", re.DOTALL)
_FORMAT = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True, slots=True)
class Case:
    """A text, and the spans in it that must be removed, with their kinds."""

    text: str
    spans: tuple[tuple[int, int, str], ...]


def load_cases(path: Path) -> tuple[People, list[Case]]:
    """Return the people and the cases of a file. Raises MalformedInput."""
    try:
        head, *rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        people = tuple(tuple(map(str, names)) for names in head["people"])
        return people, [_case(str(row["text"]), random.Random(f"{SEED} {row['text']}")) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MalformedInput(f"{path} is no file of labelled lines: {error}.") from error


def run(cases: Path) -> dict[str, Any]:
    """Return the figures of a file.

    Per kind, `recall` is the share of labelled spans that are removed, `precision` the share of removals that are
    labelled; `untouched` is the share of texts without labels that are unchanged. Raises MalformedInput.
    """
    people, loaded = load_cases(cases)
    redactor = Redactor(SecretPatterns())
    return {"measure": "privacy", "seed": SEED, "cases": len(loaded)} | measured(
        loaded, [redactor.findings(case.text, people) for case in loaded]
    )


def measured(cases: Sequence[Case], findings: Sequence[Sequence[Finding]]) -> dict[str, Any]:
    hits: defaultdict[str, list[float]] = defaultdict(list)
    right: defaultdict[str, list[float]] = defaultdict(list)
    untouched: list[float] = []
    for case, found in zip(cases, findings, strict=True):
        gone = {position for finding in found for position in range(finding.start, finding.end)}
        meant = {position for start, end, _ in case.spans for position in range(start, end)}
        for start, end, kind in case.spans:
            hits[kind].append(float(gone.issuperset(range(start, end))))
        for finding in found:
            right[finding.kind].append(float(_is_right(case.text, finding, meant)))
        if not case.spans:
            untouched.append(float(not found))
    results = {
        kind: {
            "recall": _mean(hits[kind]),
            "recall_ci": bootstrap_interval(hits[kind] or [0.0]),
            "precision": _mean(right[kind]),
            "precision_ci": bootstrap_interval(right[kind] or [0.0]),
            "labelled": len(hits[kind]),
            "removed": len(right[kind]),
        }
        for kind in KINDS.values()
    }
    every_hit = [hit for kind in hits.values() for hit in kind]
    every_right = [each for kind in right.values() for each in kind]
    return {
        "results": results,
        "recall": _mean(every_hit),
        "recall_ci": bootstrap_interval(every_hit or [0.0]),
        "precision": _mean(every_right),
        "precision_ci": bootstrap_interval(every_right or [0.0]),
        "untouched": _mean(untouched),
        "untouched_ci": bootstrap_interval(untouched or [0.0]),
    }


def print_table(figures: Mapping[str, Any], console: Console) -> None:
    headers = ("kind", "recall", "recall 95 %", "precision", "precision 95 %", "labelled", "removed")
    table = Table(*headers, title=f"{figures['cases']} lines")
    for kind, row in (*figures["results"].items(), ("all", figures)):
        low, high = row["recall_ci"]
        floor, ceiling = row["precision_ci"]
        counts = [str(row[key]) if key in row else "" for key in ("labelled", "removed")]
        figures_of = (
            f"{row['recall']:.3f}",
            f"{low:.2f}–{high:.2f}",
            f"{row['precision']:.3f}",
            f"{floor:.2f}–{ceiling:.2f}",
        )
        table.add_row(kind, *figures_of, *counts)
    print_whole(table, console)
    console.print(f"{figures['untouched']:.1%} of the lines without anything to hide stay as they are.")


def _is_right(text: str, finding: Finding, meant: set[int]) -> bool:
    """Return whether a finding covers labelled text, and otherwise only punctuation."""
    span = range(finding.start, finding.end)
    surplus = [text[position] for position in span if position not in meant]
    return len(surplus) < len(span) and not any(map(str.isalnum, surplus))


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0


def _case(marked: str, generator: random.Random) -> Case:
    filled = _FORMAT.sub(lambda match: _made_up(match, generator), marked)
    pieces, spans, end, length = list[str](), list[tuple[int, int, str]](), 0, 0
    for match in _LABEL.finditer(filled):
        pieces += filled[end : match.start()], match["text"]
        length += match.start() - end
        spans.append((length, length + len(match["text"]), KINDS[match["kind"]]))
        length += len(match["text"])
        end = match.end()
    return Case("".join((*pieces, filled[end:])), tuple(spans))


def _made_up(match: re.Match[str], generator: random.Random) -> str:
    make = _FORMATS.get(match[1])
    return make(generator) if make else match[0]


_WORDS = "amber otter quay lantern harbour copper thistle ferry marble willow".split()
_HEX = string.hexdigits[:16]
_UPPER = string.ascii_uppercase + string.digits
_ALL = string.ascii_letters + string.digits


def _random_text(generator: random.Random, characters: str, length: int) -> str:
    return "".join(generator.choices(characters, k=length))


def _password(generator: random.Random) -> str:
    word = generator.choice(_WORDS)
    return generator.choice(
        [
            f"{word.capitalize()}{generator.choice('-!#%+')}{generator.randint(10, 9999)}",
            f"{word}{generator.randint(10, 9999)}",
            _random_text(generator, _ALL, 5) + generator.choice("!#%+") + _random_text(generator, _ALL, 5) + "7",
        ]
    )


def _jwt(generator: random.Random) -> str:
    return f"eyJhbGciOiJIUzI1NiJ9.eyJ{_random_text(generator, _ALL, 40)}.{_random_text(generator, _ALL, 43)}"


def _private_key(generator: random.Random) -> str:
    body = "\n".join(_random_text(generator, _ALL + "+/", 64) for _ in range(4))
    return f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"


def _random(prefix: str, characters: str, length: int) -> Callable[[random.Random], str]:
    return lambda generator: prefix + _random_text(generator, characters, length)


_FORMATS: dict[str, Callable[[random.Random], str]] = {
    "aws_key": _random("AKIA", _UPPER, 16),
    "aws_secret": _random("", _ALL + "+/", 40),
    "azure_secret": lambda generator: (
        f"{_random_text(generator, _ALL, 8)}~{_random_text(generator, _ALL + '_.-', 30)}q"
    ),
    "azure_storage": lambda generator: _random_text(generator, _ALL + "+/", 86) + "==",
    "basic": lambda generator: base64.b64encode(f"ci:{_password(generator)}".encode()).decode(),
    "github": _random("ghp_", _ALL, 36),
    "github_pat": lambda generator: (
        f"github_pat_{_random_text(generator, _ALL, 22)}_{_random_text(generator, _ALL, 59)}"
    ),
    "gitlab": _random("glpat-", _ALL, 20),
    "google": _random("AIza", _ALL, 35),
    "hex32": _random("", _HEX, 32),
    "hex40": _random("", _HEX, 40),
    "hex64": _random("", _HEX, 64),
    "huggingface": _random("hf_", string.ascii_letters, 34),
    "jwt": _jwt,
    "npm": _random("npm_", _ALL, 36),
    "opaque": _random("", _ALL, 40),
    "opaque20": _random("u", _ALL, 19),
    "openai": _random("sk-proj-", _ALL, 48),
    "passphrase": lambda generator: "-".join(generator.sample(_WORDS, 3)),
    "password": _password,
    "private_key": _private_key,
    "pypi": _random("pypi-", _ALL, 100),
    "sendgrid": lambda generator: f"SG.{_random_text(generator, _ALL, 22)}.{_random_text(generator, _ALL, 43)}",
    "slack_bot": lambda generator: f"xoxb-{generator.randint(10**11, 10**12)}-{_random_text(generator, _ALL, 24)}",
    "slack_hook": lambda generator: (
        "https://hooks.slack.com/services/T"
        + "/".join(
            (
                _random_text(generator, _UPPER, 8),
                "B" + _random_text(generator, _UPPER, 8),
                _random_text(generator, _ALL, 24),
            )
        )
    ),
    "stripe": _random("sk_live_", _ALL, 24),
    "telegram": lambda generator: f"{generator.randint(10**8, 10**9)}:AA{_random_text(generator, _ALL, 33)}",
    "vault": _random("hvs.", _ALL, 24),
}
