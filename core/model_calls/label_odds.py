"""Label probabilities from one constrained reply and the log probabilities of its tokens.

A reply that must be one of the labels (a JSON string) is generated once. At each token, the server reports the most
probable alternatives, ignoring the constraint. Alternatives that continue some label share the probability of that
position; the others are forbidden and drop out. The result for a label is the probability of constrained sampling at
temperature 1, whatever its tokenization.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokenStep:
    """A generated token, with the log probabilities (natural) of the most probable tokens at its position, itself
    included.
    """

    text: str
    alternatives: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class LabelReading:
    """The result of one reply. All probabilities sum to 1.

    `settled` maps labels to probabilities. `undecided` maps groups of labels that continue alike, off the generated
    path, to their shared probability; a reply constrained to such a group resolves it.
    """

    settled: Mapping[str, float]
    undecided: Mapping[tuple[str, ...], float]


def label_schema(labels: Sequence[str]) -> dict[str, object]:
    """Return the JSON schema of a reply that is one of `labels`."""
    return {"type": "string", "enum": list(labels)}


def read_labels(steps: Sequence[TokenStep], labels: Sequence[str]) -> LabelReading | None:
    """Return the probabilities of `labels` (two or more, distinct) from a reply; None if the reply begins none of them."""
    spelled = {label: json.dumps(label, ensure_ascii=False) for label in labels}
    settled, undecided = dict.fromkeys(labels, 0.0), dict[tuple[str, ...], float]()
    alive, written, weight = tuple(labels), "", 1.0
    for original in steps:
        step = original if written else _without_space(original)
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
    """Return the token without leading space, which carries no information."""
    alternatives: dict[str, float] = {}
    for text, logprob in step.alternatives.items():
        bare = text.lstrip()
        alternatives[bare] = max(logprob, alternatives.get(bare, logprob))
    return TokenStep(step.text.lstrip(), alternatives)


def _begun_by(text: str, rests: Mapping[str, str]) -> tuple[str, ...]:
    """Return the labels whose remainder can continue with this token, or end within it."""
    return tuple(
        label
        for label, rest in rests.items()
        if text and (rest.startswith(text) or (text.startswith(rest) and text[len(rest) :].isspace()))
    )


def _shares(step: TokenStep, rests: Mapping[str, str], path: tuple[str, ...]) -> dict[tuple[str, ...], float]:
    """Return the share of this position for each group of labels that continue alike.

    A token off the path that leaves all labels open is another tokenization of their common prefix. It is assumed to
    have the same odds as the path, and left out.
    """
    groups = {text: _begun_by(text, rests) for text in step.alternatives}
    informative = {
        text: group for text, group in groups.items() if group and (len(group) < len(rests) or group == path)
    }
    highest = max(step.alternatives[text] for text in informative)
    masses: dict[tuple[str, ...], float] = {}
    for text, group in informative.items():
        masses[group] = masses.get(group, 0.0) + math.exp(step.alternatives[text] - highest)
    total = math.fsum(masses.values())
    return {group: mass / total for group, mass in masses.items()}
