"""Measure whether everything confidential is removed, and nothing else.

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from adapters.secret_detector import SecretPatterns
from bot.evaluation.report import SEED, bootstrap_interval, cell, print_rows
from core.knowledge.names import People
from core.knowledge.redactor import Redactor, SensitiveSpan
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
        raise MalformedInput(f"{path} is not a file of labelled lines: {error}.") from error


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


def measured(cases: Sequence[Case], findings: Sequence[Sequence[SensitiveSpan]]) -> dict[str, Any]:
    hits: defaultdict[str, list[float]] = defaultdict(list)
    right: defaultdict[str, list[float]] = defaultdict(list)
    untouched: list[float] = []
    for case, removed in zip(cases, findings, strict=True):
        gone = {position for finding in removed for position in range(finding.start, finding.end)}
        meant = {position for start, end, _ in case.spans for position in range(start, end)}
        for start, end, kind in case.spans:
            hits[kind].append(float(gone.issuperset(range(start, end))))
        for finding in removed:
            right[finding.kind].append(float(_is_right(case.text, finding, meant)))
        if not case.spans:
            untouched.append(float(not removed))
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
    keys = ("recall", "precision", "labelled", "removed")
    rows = [*figures["results"].items(), ("all", figures)]
    print_rows(
        console,
        ("kind", *keys),
        [(kind, *(cell(row, key, ".3f") for key in keys)) for kind, row in rows],
        f"{figures['cases']} lines",
    )
    console.print(f"{figures['untouched']:.1%} of the lines without anything confidential are unchanged.")


def _is_right(text: str, finding: SensitiveSpan, meant: set[int]) -> bool:
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
    """Return a secret of the named format; an unknown name unchanged."""

    def run(part: re.Match[str]) -> str:
        if part["kind"] == "w":
            return generator.choice(_WORDS)
        return "".join(generator.choices(_CHARACTERS[part["kind"]], k=int(part["length"])))

    patterns = _FORMATS.get(match[1])
    if patterns is None:
        return match[0]
    secret = _RUN.sub(run, generator.choice(patterns))
    return base64.b64encode(f"ci:{secret}".encode()).decode() if match[1] == "basic" else secret


_WORDS = "amber otter quay lantern harbour copper thistle ferry marble willow".split()
_CHARACTERS = {
    "d": string.digits,
    "h": string.hexdigits[:16],
    "u": string.ascii_uppercase + string.digits,
    "l": string.ascii_letters,
    "a": string.ascii_letters + string.digits,
    "b": string.ascii_letters + string.digits + "+/",
    "z": string.ascii_letters + string.digits + "_.-",
}
_RUN = re.compile(r"<(?P<kind>[dhulabzw])(?P<length>\d*)>")
_PASSWORDS = ("<w>-<d4>", "<w>#<d3>", "<w><d4>", "<a5>!<a5>7", "<a5>%<a5>7")
_FORMATS = {
    "aws_key": ("AKIA<u16>",),
    "aws_secret": ("<b40>",),
    "azure_secret": ("<a8>~<z30>q",),
    "azure_storage": ("<b86>==",),
    "basic": _PASSWORDS,
    "github": ("ghp_<a36>",),
    "github_pat": ("github_pat_<a22>_<a59>",),
    "gitlab": ("glpat-<a20>",),
    "google": ("AIza<a35>",),
    "hex32": ("<h32>",),
    "hex40": ("<h40>",),
    "hex64": ("<h64>",),
    "huggingface": ("hf_<l34>",),
    "jwt": ("eyJhbGciOiJIUzI1NiJ9.eyJ<a40>.<a43>",),
    "npm": ("npm_<a36>",),
    "opaque": ("<a40>",),
    "opaque20": ("u<a19>",),
    "openai": ("sk-proj-<a48>",),
    "passphrase": ("<w>-<w>-<w>",),
    "password": _PASSWORDS,
    "private_key": ("-----BEGIN RSA PRIVATE KEY-----\n<b64>\n<b64>\n<b64>\n<b64>\n-----END RSA PRIVATE KEY-----",),
    "pypi": ("pypi-<a100>",),
    "sendgrid": ("SG.<a22>.<a43>",),
    "slack_bot": ("xoxb-<d12>-<a24>",),
    "slack_hook": ("https://hooks.slack.com/services/T<u8>/B<u8>/<a24>",),
    "stripe": ("sk_live_<a24>",),
    "telegram": ("<d9>:AA<a33>",),
    "vault": ("hvs.<a24>",),
}
"""The patterns of each format; `<a36>` is a run of 36 letters and digits, `<w>` a word."""
