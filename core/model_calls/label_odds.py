"""The probabilities of a few labels, read from one constrained reply and the log probabilities of its tokens.

A reply that must be one of the labels, as a JSON string, is generated once. At each of its tokens the server names the
most probable tokens in that place, whatever the constraint. Those that some label can go on with share the probability
of that place; the others are forbidden by the constraint and drop out. What a label gets is therefore the probability
that constrained sampling at temperature 1 would give it, however many tokens it has and however they are cut.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokenStep:
    """A generated token's text, and text → natural log probability of the likeliest tokens in its place, its own too."""

    text: str
    alternatives: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class LabelReading:
    """The reading of one reply; all probabilities add up to 1.

    `settled`: label → probability. `undecided`: labels that go on alike off the path that was generated → the
    probability that they share; a reply constrained to them alone tells how.
    """

    settled: Mapping[str, float]
    undecided: Mapping[tuple[str, ...], float]


def label_schema(labels: Sequence[str]) -> dict[str, object]:
    """The JSON schema of a reply that is one of `labels`."""
    return {"type": "string", "enum": list(labels)}


def read_labels(steps: Sequence[TokenStep], labels: Sequence[str]) -> LabelReading | None:
    """The probabilities of `labels` (distinct, two or more) from a reply that begins one; None if it does not."""
    spelled = {label: json.dumps(label, ensure_ascii=False) for label in labels}
    settled, undecided = dict.fromkeys(labels, 0.0), dict[tuple[str, ...], float]()
    alive, written, weight = tuple(labels), "", 1.0
    for told in steps:
        step = told if written else _without_space(told)
        if not step.text:
            continue
        rests = {label: spelled[label][len(written) :] for label in alive}
        path = _begun_by(step.text, rests)
        if not path:
            return None
        carried = 0.0
        for group, share in _shares(step, rests, path).items():
            if len(group) == 1:
                settled[group[0]] += weight * share
            elif group == path:
                carried = weight * share
            else:
                undecided[group] = undecided.get(group, 0.0) + weight * share
        if len(path) == 1:
            return LabelReading(settled, undecided)
        alive, weight = path, carried
        written += step.text
    return None


def _without_space(step: TokenStep) -> TokenStep:
    """A token before which a reply may have space, which says nothing."""
    alternatives: dict[str, float] = {}
    for text, logprob in step.alternatives.items():
        bare = text.lstrip()
        alternatives[bare] = max(logprob, alternatives.get(bare, logprob))
    return TokenStep(step.text.lstrip(), alternatives)


def _begun_by(text: str, rests: Mapping[str, str]) -> tuple[str, ...]:
    """The labels whose rest can go on with this token, or end within it."""
    return tuple(
        label
        for label, rest in rests.items()
        if text and (rest.startswith(text) or (text.startswith(rest) and text[len(rest) :].isspace()))
    )


def _shares(step: TokenStep, rests: Mapping[str, str], path: tuple[str, ...]) -> dict[tuple[str, ...], float]:
    """Labels that go on alike → their share of this place.

    A token off the path that leaves all labels open is another spelling of their common beginning. It is taken to lead
    to the same odds as the path, so it is left out.
    """
    groups = {text: _begun_by(text, rests) for text in step.alternatives}
    told = {text: group for text, group in groups.items() if group and (len(group) < len(rests) or group == path)}
    highest = max(step.alternatives[text] for text in told)
    masses: dict[tuple[str, ...], float] = {}
    for text, group in told.items():
        masses[group] = masses.get(group, 0.0) + math.exp(step.alternatives[text] - highest)
    total = math.fsum(masses.values())
    return {group: mass / total for group, mass in masses.items()}
