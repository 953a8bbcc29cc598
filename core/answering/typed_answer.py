"""The answers to the parts of a question → one answer, each sentence citing within its own chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.answering.answer import Answer, Citation, Sentence
from core.answering.rewrite import standalone
from core.confidence.prediction import Evaluation
from core.conversation import Speaker, Turn
from core.knowledge.question_parts import question_parts


def part_queries(question: str, query: str) -> tuple[str, ...]:
    """What to search for each part of a question, a part that leans on the ones before it with their words.

    `query` is the question made to stand alone. A follow-up is not split: its query repeats words to weigh them.
    """
    if query != question.strip():
        return (query,)
    parts = question_parts(question)
    asked = [Turn(Speaker.PERSON, part) for part in parts]
    return tuple(standalone(part, asked[:place]) for place, part in enumerate(parts))


def better(parts: Sequence[tuple[Answer, Evaluation]], whole: tuple[Answer, Evaluation]) -> tuple[Answer, Evaluation]:
    """The parts' answers joined, if each part was answered and none worse than the question as a whole; else that one.

    Two questions in one find little that holds both, while the parts of one question find less than the whole.
    """
    answer, evaluation = joined(parts)
    worse = evaluation.coe < whole[1].coe or evaluation.rce < whole[1].rce
    return whole if worse or any(part.abstained for part, _ in parts) else (answer, evaluation)


def joined(answers: Sequence[tuple[Answer, Evaluation]]) -> tuple[Answer, Evaluation]:
    """One answer of at least one, in their order; the same section is cited under one number.

    It is worth as much as its weakest part: both measures are the smallest of theirs.
    """
    sentences: list[Sentence] = []
    citations: dict[tuple[str, str, str, str], Citation] = {}
    for answer, _ in answers:
        numbers: dict[int, int] = {}
        for source in answer.citations:
            place = (source.passage_id, source.heading, source.anchor, source.url)
            kept = citations.setdefault(place, replace(source, number=len(citations) + 1))
            numbers[source.number] = kept.number
        said = {sentence.text for sentence in sentences}
        sentences += [
            Sentence(sentence.text, tuple(numbers[number] for number in sentence.citations))
            for sentence in answer.sentences
            if sentence.text not in said
        ]
    joined_answer = replace(
        answers[0][0],
        sentences=tuple(sentences),
        citations=tuple(citations.values()),
        tentative=any(answer.tentative for answer, _ in answers),
        conflicts=tuple(conflict for answer, _ in answers for conflict in answer.conflicts),
    )
    evaluations = [evaluation for _, evaluation in answers]
    return joined_answer, Evaluation(min(item.coe for item in evaluations), min(item.rce for item in evaluations))
