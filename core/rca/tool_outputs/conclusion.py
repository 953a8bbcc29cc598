"""What all that the tools returned says together: the cause in a few sentences, and the lines that show it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from core.knowledge.terms import terms
from core.model.incident import Evidence, EvidenceKind
from core.rca.tool_outputs.clue import Clue, Role, ToolOutput
from core.rca.tool_outputs.focus import Focus, focus_on, stem
from core.rca.tool_outputs.nearest import nearest
from core.rca.tool_outputs.reading import NO_SUCH_THING, clues, is_record, searched, subject_of
from core.rca.tool_outputs.settings import setting_of

MAX_WORDS = 60  # of the cause
LEAST_WORDS = 8  # of room that a further sentence needs
SETTING = 0.6  # how much the configuration behind a clue shows, against the clue
AGAIN = 0.7  # how much less a further quote from the same output shows
MAX_SETTING = 10  # words of a setting that is told in the cause
MAX_EVIDENCE = 3
SURE_ENOUGH = 0.22  # score below which a sign is ordinary noise
EFFECT = 0.75  # how much less an effect explains than a cause
RIVAL = 0.5  # of the best score, from which another cause is named beside it
FOLLOWS = 0.25  # of the best score, from which it is told what follows from it
ALIKE = 0.7  # resemblance to a stronger clue, from which a clue says nothing new
MAX_RECORD = 2_000  # characters of a record by which it is told what it is about
MAX_COMPARED = 1_000  # clues that are looked through for different ones
MAX_RANKED = 60  # clues that are compared with each other


_WORD = re.compile(r"[\w:.-]{3,}")


@dataclass(frozen=True, slots=True)
class Conclusion:
    """`cause` is empty if nothing shows trouble; then the evidence is what was nearest to the question, and `read` says whether there was anything to read at all.

    `score` in [0, 1] ranks the cause among others and is no probability.
    """

    cause: str
    evidence: tuple[Evidence, ...]
    subject: str
    score: float
    read: bool


@dataclass(frozen=True, slots=True)
class _Ranked:
    clue: Clue
    score: float


def conclude(question: str, outputs: Sequence[ToolOutput]) -> Conclusion:
    """The most probable cause of what `question` asks about, with at most MAX_EVIDENCE quotes, the most telling first.

    What explains goes before what follows from it, and what the question names before what stands elsewhere.
    """
    question = "\n".join([question, *(text for output in outputs for text in searched(output.arguments))])
    sought = _exact_words(question)
    found = [clue for output in outputs for clue in clues(output, sought) if not _refuted(clue, outputs)]
    focus = _focus(question, outputs, found)
    ranked = _ranked(found, focus)
    read = any(output.text.strip() and not output.failed for output in outputs)
    if not ranked or ranked[0].score < SURE_ENOUGH:
        weak = _evidence([], ranked, None)
        return Conclusion("", _filled(weak, question, outputs), "", ranked[0].score if ranked else 0.0, read)
    told = _told(ranked, focus)
    return Conclusion(
        cause=_worded([each.clue for each in told]),
        evidence=_filled(_evidence(told, ranked, setting_of(told[0].clue, outputs)), question, outputs),
        subject=told[0].clue.subject,
        score=min(1.0, told[0].score),
        read=read,
    )


def _focus(question: str, outputs: Sequence[ToolOutput], found: Sequence[Clue]) -> Focus:
    """What the question names, or else the record that was looked up by its id, or else what was looked at most.

    What errors of that speak of belongs to it.
    """
    asked = [name for output in outputs if (name := subject_of(output.arguments)[0])]
    subjects = list(dict.fromkeys([*asked, *(clue.subject for clue in found if clue.subject)]))
    focus = focus_on(question, subjects)
    if not focus.closeness:
        records = [output.text[:MAX_RECORD] for output in outputs if is_record(output)]
        focus = focus_on("\n".join([question, *records]), subjects)
    if not focus.closeness:
        focus = focus.asked_most(asked, subjects)
    best = _ranked(found, focus)
    return focus.widened([each.clue for each in best if each.score >= RIVAL * best[0].score], subjects)


def _ranked(found: Iterable[Clue], focus: Focus) -> list[_Ranked]:
    scored = [
        _Ranked(clue, clue.strength * (EFFECT if clue.role is Role.EFFECT else 1.0) * focus.weight(clue))
        for clue in found
    ]
    return _distinct(sorted(scored, key=lambda each: -each.score)[:MAX_COMPARED])


def _distinct(scored: Sequence[_Ranked]) -> list[_Ranked]:
    """Without those that say what a stronger one said.

    Resemblance is the share of the words of both that both have (Broder, “On the resemblance and containment of
    documents”, 1997): a short statement is no repetition only because a long one happens to hold its words.
    """
    kept: list[_Ranked] = []
    words: list[set[str]] = []
    for each in scored:
        said = set(terms(each.clue.statement))
        if not said or any(len(said & other) >= ALIKE * len(said | other) for other in words):
            continue
        kept.append(each)
        words.append(said)
        if len(kept) == MAX_RANKED:
            break
    return kept


def _told(ranked: Sequence[_Ranked], focus: Focus) -> list[_Ranked]:
    """What the cause is told from: the best, what rivals it, an effect on the same thing, then the rest in its order."""
    best = ranked[0]
    rivals = [each for each in ranked[1:] if each.score >= RIVAL * best.score and each.clue.role is Role.CAUSE]
    near, apart = _by_family(rivals, best)
    others = [each for each in apart if focus.means(each.clue.subject)]
    effects = [each for each in ranked[1:] if each.score >= FOLLOWS * best.score and _is_state(each.clue)]
    told = [best, *near[:1], *others[:1], *_by_family(effects, best)[0][:1], *near[1:2], *_worth_telling(ranked)]
    return [each for place, each in enumerate(told) if each not in told[:place]]


def _worth_telling(ranked: Sequence[_Ranked]) -> list[_Ranked]:
    """All that may be told, of what nobody asked about only what somebody looked at."""
    return [
        each
        for each in ranked
        if each.score >= FOLLOWS * ranked[0].score
        and (each.clue.targeted or stem(each.clue.subject) == stem(ranked[0].clue.subject))
    ]


def _is_state(clue: Clue) -> bool:
    return clue.role is Role.EFFECT and clue.kind is EvidenceKind.TOPOLOGY


def _by_family(ranked: Sequence[_Ranked], best: _Ranked) -> tuple[list[_Ranked], list[_Ranked]]:
    """Those that are about what the best is about, or made from the same template, and the others."""
    family = stem(best.clue.subject)
    near = [each for each in ranked if stem(each.clue.subject) == family]
    return near, [each for each in ranked if each not in near]


def _worded(told: Sequence[Clue]) -> str:
    """The clues as sentences, whole ones as long as there is room."""
    sentences: list[str] = []
    room = MAX_WORDS
    for number, clue in enumerate(told):
        apart = stem(clue.subject) != stem(told[0].subject)
        said = _sentence(clue, clue.support if not number else ())
        words = f"Also seen: {said}".split() if apart else said.split()
        if number and room < LEAST_WORDS:
            break
        kept = words if len(words) <= room else [*words[: room - 1], "…"]
        sentences.append(" ".join(kept))
        room -= len(kept)
    return ". ".join(sentences) + "."


def _sentence(clue: Clue, settings: Sequence[str]) -> str:
    """What a clue says, about what, and the first short setting that explains it."""
    known = not clue.subject or stem(clue.subject) in clue.statement
    said = (clue.statement if known else f"{clue.subject}: {clue.statement}").rstrip(". ")
    short = next((line for line in settings if len(line.split()) <= MAX_SETTING), "")
    return f"{said} ({' '.join(short.split())})" if short else said


def _exact_words(text: str) -> frozenset[str]:
    """Return the ids, times and addresses in a text: its words of at least 3 characters that hold a digit."""
    words = (word.strip(":.-") for word in _WORD.findall(text))
    return frozenset(word for word in words if len(word) >= 3 and any(map(str.isdecimal, word)))


def _refuted(clue: Clue, outputs: Sequence[ToolOutput]) -> bool:
    """Whether something was said not to be there that another answer shows, if only under its whole name."""
    if clue.strength != NO_SUCH_THING or not clue.subject:
        return False
    others = [
        output for output in outputs if output.text.strip() and not output.failed and clue.quote not in output.text
    ]
    if any(subject_of(output.arguments)[0] == clue.subject for output in others):
        return True
    return stem(clue.subject) == clue.subject and any(f"{clue.subject}-" in output.text for output in others)


def _filled(found: tuple[Evidence, ...], question: str, outputs: Sequence[ToolOutput]) -> tuple[Evidence, ...]:
    """The evidence, and where there is little, the lines that are nearest to the question."""
    more = nearest(question, outputs, MAX_EVIDENCE) if len(found) < MAX_EVIDENCE else []
    quoted = "\n".join(each.quote for each in found)
    return (*found, *(each for each in more if each.quote not in quoted))[:MAX_EVIDENCE]


def _evidence(told: Sequence[_Ranked], ranked: Sequence[_Ranked], setting: Evidence | None) -> tuple[Evidence, ...]:
    """The quote of the best clue, then what else is strong, rather from another output than from the same once more.

    The configuration that explains a clue that is told counts SETTING as much as the clue.
    """
    left = [(each.score, _quoted(each.clue)) for each in ranked if each.score >= FOLLOWS * ranked[0].score]
    left += [
        (SETTING * each.score, replace(_quoted(each.clue), quote=line))
        for each in told[:2]
        for line in each.clue.support
    ]
    left += [(SETTING * told[0].score, setting)] if setting else []
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
