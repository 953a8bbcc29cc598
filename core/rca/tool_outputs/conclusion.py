"""Draw a conclusion from tool outputs: the cause in a few sentences, and the lines that show it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from core.knowledge.terms import terms
from core.model.explanation import Evidence, EvidenceKind
from core.rca.cluster.faults import ObjectFault
from core.rca.cluster.findings import findings
from core.rca.cluster.reading import read
from core.rca.cluster.state import Cluster, stem
from core.rca.tool_outputs.clues import Clue, ClueRole, ToolOutput, clues

MAX_WORDS = 60  # of the cause
LEAST_WORDS = 8  # of room for a further sentence
SETTING = 0.6  # weight of the configuration behind a clue, relative to the clue
AGAIN = 0.7  # factor on a quote for each earlier one from the same output
MAX_SETTING = 10  # words of a setting that is shown in the cause
MAX_EVIDENCE = 3
SURE_ENOUGH = 0.22  # score; a clue with a lower one is noise
EFFECT = 0.75  # factor on the score of an effect
RIVAL, FOLLOWS = 0.5, 0.25  # of the best score, for another cause and for other clues to be shown
ALIKE = 0.7  # resemblance to a stronger clue from which a clue is a repetition
MAX_COMPARED, MAX_RANKED = 1_000, 60  # clues searched for distinct ones, and distinct clues kept

FAR = 0.7  # weight of a fault of another object, which may be why a subject suffers that shows no trouble itself
ELSEWHERE = 0.3  # weight of clues about other subjects
UNNAMED = 0.4  # closeness of any subject to a question that names none
LOOKED_AT = 0.55  # minimum closeness of a subject that a tool was asked about by name
NEAR = 0.3  # share of a name's words that a question must contain to be about it

_WORD = re.compile(r"[\w:.-]{3,}")
_SEARCHES = ("filter", "search", "pattern", "grep", "text", "term", "keyword")
_KINDS = frozenset(terms("pod pods deployment service job cronjob node namespace app container default kubernetes"))


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The conclusion from tool outputs. `cause` may be empty; `score` in [0, 1] ranks it, and is not a probability.

    `findings` are the typed ones among what the cause tells, by rank; None is something else that it tells.
    """

    cause: str
    evidence: tuple[Evidence, ...]
    score: float
    findings: tuple[ObjectFault | None, ...] = ()


@dataclass(frozen=True, slots=True)
class _Ranked:
    clue: Clue
    score: float


def conclude(
    question: str,
    outputs: Sequence[ToolOutput],
    cluster: Cluster | None = None,
    service: str = "",
    others: Collection[str] = (),
) -> Conclusion:
    """Return the most probable cause for `question`, with at most MAX_EVIDENCE quotes, the best first.

    Causes go before effects, and clues about subjects that the question names go before others. `cluster` is what all
    outputs show of one, if these are only a part of them: those about `service`, of whose objects all faults count; those
    of `others` do not.
    """
    searched = [text for each in outputs for key, text in each.arguments.items() if key.lower() in _SEARCHES]
    question = "\n".join([question, *searched])
    sought = [word for each in _WORD.findall(question) if any(map(str.isdecimal, word := each.strip(":.-")))]
    cluster = cluster or read(outputs)
    sources = {output.source for output in outputs}
    candidates = [
        _clue(each)
        for each in findings(cluster)
        if (each.source in sources or each.name == service) and each.name not in others
    ]
    candidates += [
        clue
        for output in outputs
        if output.source not in cluster.healthy
        for clue in clues(output, sought)
        if clue.kind is not EvidenceKind.TOPOLOGY or not cluster.is_well(clue.subject)
    ]
    closeness = _closeness(question, [*(each.subject for each in outputs), *(clue.subject for clue in candidates)])
    ranked = _ranked(candidates, closeness)
    if not ranked or ranked[0].score < SURE_ENOUGH:
        return Conclusion("", _evidence([], ranked), ranked[0].score if ranked else 0.0)
    chosen = _chosen(ranked)
    typed = tuple(each.clue.finding for each in chosen)
    return Conclusion(
        _worded([each.clue for each in chosen]), _evidence(chosen, ranked), min(1.0, chosen[0].score), typed
    )


def _clue(finding: ObjectFault) -> Clue:
    return Clue(
        finding.name,
        finding.cause,
        finding.quote,
        finding.strength,
        ClueRole.CAUSE,
        finding.evidence,
        source=finding.source,
        finding=finding,
    )


def _closeness(question: str, subjects: Iterable[str]) -> dict[str, float]:
    """Return how close each subject is to a question, in [0, 1]. Rarer words of a name count more.

    Closeness is relative to the nearest subject; empty if none is near.
    """
    words = frozenset(terms(question))
    names = {subject: set(terms(stem(subject))) - _KINDS for subject in dict.fromkeys(subjects) if subject}
    frequency = Counter(
        part for parts in {stem(subject): parts for subject, parts in names.items()}.values() for part in parts
    )
    raw = {
        subject: sum(1 / frequency[part] for part in parts & words) / sum(1 / frequency[part] for part in parts)
        for subject, parts in names.items()
        if parts
    }
    best = max(raw.values(), default=0.0)
    return {subject: near / best for subject, near in raw.items()} if best >= NEAR else {}


def _ranked(candidates: Iterable[Clue], closeness: dict[str, float]) -> list[_Ranked]:
    scored: list[_Ranked] = []
    candidates = list(candidates)
    is_troubled = any(closeness.get(clue.subject) == 1.0 and clue.kind is EvidenceKind.TOPOLOGY for clue in candidates)
    far = ELSEWHERE if is_troubled else FAR
    for clue in candidates:
        close = closeness.get(clue.subject, 0.0) if closeness else UNNAMED
        if clue.targeted:
            close = LOOKED_AT + (1 - LOOKED_AT) * close
        if clue.finding:
            near = 1.0 if not closeness or clue.finding.kind != "app" else close
            scored.append(_Ranked(clue, clue.strength * (far + (1 - far) * near)))
            continue
        role = EFFECT if clue.role is ClueRole.EFFECT else 1.0
        scored.append(_Ranked(clue, clue.strength * role * (ELSEWHERE + (1 - ELSEWHERE) * close)))
    return _distinct(sorted(scored, key=lambda each: -each.score)[:MAX_COMPARED])


def _distinct(scored: Sequence[_Ranked]) -> list[_Ranked]:
    """Return the clues without those that repeat a stronger one.

    Resemblance is the number of shared words by the number of all (Broder, “On the resemblance and containment of
    documents”, 1997), so that a short statement is not a repetition only because a long one contains its words.
    """
    kept: list[_Ranked] = []
    words: list[set[str]] = []
    for each in scored:
        statement = set(terms(each.clue.statement))
        if not statement or any(len(statement & other) >= ALIKE * len(statement | other) for other in words):
            continue
        kept.append(each)
        words.append(statement)
        if len(kept) == MAX_RANKED:
            break
    return kept


def _chosen(ranked: Sequence[_Ranked]) -> list[_Ranked]:
    """Return the clues to word: the best, its rivals, an effect on the same thing, then clues about requested subjects."""
    best = ranked[0]
    family = stem(best.clue.subject)
    near = [each for each in ranked[1:] if stem(each.clue.subject) == family]
    rivals = [each for each in ranked[1:] if each.score >= RIVAL * best.score and each.clue.role is ClueRole.CAUSE]
    states = [each for each in near if each.clue.role is ClueRole.EFFECT and each.clue.kind is EvidenceKind.TOPOLOGY]
    others = [each for each in ranked[1:] if each in near or each.clue.targeted]
    ordered = [best, *rivals[:2], *states[:1], *others]
    return [
        each for place, each in enumerate(ordered) if each not in ordered[:place] and each.score >= FOLLOWS * best.score
    ]


def _worded(chosen: Sequence[Clue]) -> str:
    """Return the clues as sentences, as long as there is room."""
    sentences: list[str] = []
    room = MAX_WORDS
    for number, clue in enumerate(chosen):
        if number and room < LEAST_WORDS:
            break
        apart = "Also seen: " if stem(clue.subject) != stem(chosen[0].subject) else ""
        words = f"{apart}{_sentence(clue, () if number else clue.support)}".split()
        kept = words if len(words) <= room else [*words[: room - 1], "…"]
        sentences.append(" ".join(kept))
        room -= len(kept)
    return ". ".join(sentences) + "."


def _sentence(clue: Clue, settings: Sequence[str]) -> str:
    """Return the statement of a clue with its subject, and with the first short setting that explains it."""
    is_named = not clue.subject or stem(clue.subject) in clue.statement
    statement = (clue.statement if is_named else f"{clue.subject}: {clue.statement}").rstrip(". ")
    short = next((line for line in settings if len(line.split()) <= MAX_SETTING), "")
    return f"{statement} ({' '.join(short.split())})" if short else statement


def _evidence(worded: Sequence[_Ranked], ranked: Sequence[_Ranked]) -> tuple[Evidence, ...]:
    """Return the quotes of the strongest clues, preferably from different outputs."""
    left = [(each.score, _quoted(each.clue)) for each in ranked if each.score >= FOLLOWS * ranked[0].score]
    left += [
        (SETTING * each.score, replace(_quoted(each.clue), quote=line))
        for each in worded[:2]
        for line in each.clue.support
    ]
    chosen: list[Evidence] = []
    while left and len(chosen) < MAX_EVIDENCE:
        seen = Counter(each.source for each in chosen)
        best = max(left, key=lambda each: each[0] * AGAIN ** seen[each[1].source])
        left.remove(best)
        if not any(best[1].quote in other.quote or other.quote in best[1].quote for other in chosen):
            chosen.append(best[1])
    return tuple(chosen)


def _quoted(clue: Clue) -> Evidence:
    return Evidence(clue.kind, clue.source, clue.quote)
