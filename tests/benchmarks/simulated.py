"""A simulated language model of known skill, to measure what the product makes of one.

It knows the truth, and answers rightly with probability `right`, drawn for each request by a hash of its text. Otherwise it
errs in one of the ways in which models err (`Error`). It judges sentences and choices with the same probability. It reads only
its prompts, and writes as `tests/benchmarks/simulated_writing.py` says.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from core.answering.model_exam import EXCERPTS, QUESTIONS, SITUATIONS, STATEMENTS
from core.answering.reply import NOT_FOUND, claims
from core.answering.statements import sentences
from core.knowledge.markdown import BlockKind, blocks, plain
from core.knowledge.terms import terms
from core.model.errors import InvalidReply
from core.model.language_model import Abilities, ModelReply, ModelRequest, OnText, ignore_text
from core.model_calls.choice import NONE
from core.model_calls.constrained_reply import label_schema
from core.model_calls.judge import SourceVerdict
from core.model_calls.prompts.answering import NO, SCALE, YES, YES_NO
from tests.benchmarks.simulated_agent import Cause, SimulatedInvestigator
from tests.benchmarks.simulated_writing import Error, formed, reworded, wrong

CONTEXT = 32_768  # tokens
LONGEST = 12  # statements of a list
SURE = 0.9  # probability that it gives to what it chooses

_PASSAGE = re.compile(r"^\[(\d+)\] ([^\n]*)\n", re.MULTILINE)
_QUESTION = re.compile(r"The question:\n=====\n(.*?)\n=====", re.DOTALL)
_ANSWER = re.compile(r"Somebody answers:\n=====\n(.*?)\n=====", re.DOTALL)
_STATEMENTS = re.compile(r"Somebody answers with these statements\..*?\n=====\n(.*?)\n=====", re.DOTALL)
_STATEMENT = re.compile(r"^\d+\. (.*?) ?(?:\[\d+\])*\n   Nearest:", re.DOTALL | re.MULTILINE)
_LATEST = re.compile(r"The latest message:\n=====\n(.*?)\n=====", re.DOTALL)
_SITUATION = re.compile(r"What is to be settled today:\n=====\n(.*?)\n=====", re.DOTALL)
_RECORD = re.compile(r"^\d+\. ", re.MULTILINE)
_CONCLUSION = re.compile(r"This conclusion was proposed:\n=====\n(.*?)\n=====", re.DOTALL)
_VERDICT = label_schema((YES, NO))


@dataclass(frozen=True, slots=True)
class Truth:
    """A question, and a predicate of text that states its answer; None if there is no answer."""

    question: str
    stated_in: Callable[[str], bool] | None


class SimulatedModel:
    """A LanguageModel that answers the questions of an evaluation with a known probability of being right.

    It knows the truth of these questions, and the `causes` of incidents.
    """

    def __init__(
        self,
        truths: Iterable[Truth],
        right: float,
        causes: Sequence[Cause] = (),
        *,
        abilities: Abilities | None = None,
    ) -> None:
        self._truths = list(truths)
        self._investigator = SimulatedInvestigator(causes, right)
        self._right = right
        self._abilities = abilities or Abilities()
        self.on_reply: Callable[[ModelReply], None] = lambda _: None  # receives the cost of each reply
        self._faithful: set[str] = set()  # sentences that it wrote rightly
        self._leads: set[str] = set()  # lines that only introduce what it wrote
        self._known: dict[str, list[tuple[int, list[str]]]] = {}  # what states the answer, by the beginning of a prompt

    @property
    def name(self) -> str:
        return f"simulated-{self._right:g}"

    async def context_tokens(self) -> int:
        return CONTEXT

    async def count_tokens(self, text: str) -> int:
        return -(-len(text.encode("utf-8", "replace")) // 4)

    async def abilities(self) -> Abilities:
        return self._abilities

    async def generate(self, request: ModelRequest, on_text: OnText = ignore_text) -> ModelReply:
        text = self._replied(request)
        on_text(text)
        return self._counted(request, text)

    async def sample(self, request: ModelRequest, count: int) -> list[ModelReply]:
        texts = [self._replied(request, number) for number in range(1, count + 1)]
        return [self._counted(request, text) for text in texts]

    def _counted(self, request: ModelRequest, text: str) -> ModelReply:
        reply = ModelReply(text, len(_text(request)) // 4, 0, len(text) // 4)
        self.on_reply(reply)
        return reply

    def _replied(self, request: ModelRequest, sample: int = 0) -> str:
        if (reply := self._investigator.reply(request, sample)) is not None:
            return reply
        if request.schema == _VERDICT:
            return self._chosen(request, (YES, NO), sample)
        if stated := _STATEMENTS.search(_text(request)):
            return self._judged_statements(request, stated[1])
        if request.schema is not None:
            return self._restated(request)
        if _SITUATION.search(_text(request)):
            return f"Analysis {sample}."
        return self._written(request, self._draw(request, sample))

    async def expect(self, request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        chosen = self._investigator.choice(request, choices)
        if chosen is None:
            chosen = self._chosen(request, choices)
        self._counted(request, chosen)
        rest = (1.0 - SURE) / (len(choices) - 1)
        return {each: SURE if each == chosen else rest for each in choices}

    def _chosen(self, request: ModelRequest, choices: Sequence[str], sample: int = 0) -> str:
        draw, right = self._draw(request, sample), self._right_choice(request, choices)
        return right if draw.random() < self._right else draw.choice([each for each in choices if each != right])

    def _judged_statements(self, request: ModelRequest, stated: str) -> str:
        draw = self._draw(request)
        verdicts: dict[str, SourceVerdict] = {}
        exam = {text for text, _ in STATEMENTS}
        for number, text in enumerate(_STATEMENT.findall(stated), start=1):
            is_lead = text in self._leads
            right = (
                SourceVerdict.LEAD
                if is_lead
                else SourceVerdict.SAID
                if text in self._faithful | exam
                else SourceVerdict.CHANGED
            )
            others = [
                each for each in SourceVerdict if (each is SourceVerdict.SAID) is not (right is SourceVerdict.SAID)
            ]
            verdicts[str(number)] = right if draw.random() < self._right else draw.choice(others)
        return json.dumps(verdicts)

    def _draw(self, request: ModelRequest, sample: int = 0) -> random.Random:
        texts = [message.text for message in request.messages]
        text = json.dumps([*texts, sample] if sample else texts, ensure_ascii=False)
        return random.Random(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())

    def _restated(self, request: ModelRequest) -> str:
        latest = _LATEST.search(_text(request))
        if latest is None:
            return self._called(request)
        truth = self._truth(latest[1])
        restated = truth.question[:300] if truth else latest[1][:300]
        return json.dumps({"follow_up": True, "question": restated, "language": "English", "english": restated})

    def _called(self, request: ModelRequest) -> str:
        question = _QUESTION.search(_text(request))
        draw = self._draw(request)
        for text, tool, service in SITUATIONS:
            if question and question[1] == text:
                is_right = draw.random() < self._right
                others = [each for _, each, _ in SITUATIONS if each is not tool]
                return json.dumps({"tool": tool if is_right else draw.choice(others), "service": service})
        raise InvalidReply("The simulated model knows no such request.")

    def _right_choice(self, request: ModelRequest, choices: Sequence[str]) -> str:
        prompt = _text(request)
        if situation := _SITUATION.search(prompt):
            return self._judged(prompt, situation[1], choices)
        if set(SCALE) == set(choices):
            answer = _ANSWER.search(prompt)
            is_right = answer is not None and all(
                line in self._faithful | self._leads for line in answer[1].splitlines()
            )
            return SCALE[-1] if is_right else SCALE[0]
        if {YES, NO} == set(choices):
            return YES if self._stating(prompt) else NO
        question = _QUESTION.search(prompt)
        exam = {text: name for text, name, _ in QUESTIONS}
        if question and question[1] in exam and {excerpt.name for excerpt in EXCERPTS} < set(choices):
            return exam[question[1]]
        truth = self._truth(question[1] if question else "")
        for name in choices:
            text = prompt.partition(f"# {name}\n")[2].partition("\n\n# ")[0]
            if truth and truth.stated_in and text and truth.stated_in(text):
                return name
        return NONE if NONE in choices else choices[-1]

    def _judged(self, prompt: str, situation: str, choices: Sequence[str]) -> str:
        """Return whether the records, or the conclusion if one is rated, state the answer (LM-PACE, COE and RCE)."""
        stated_in = self._stated_in(situation)
        conclusion = _CONCLUSION.search(prompt)
        read = [conclusion[1]] if conclusion else _RECORD.split(prompt.partition("What is to be settled today:")[0])
        is_right = stated_in is not None and any(map(stated_in, read))
        return (SCALE[-1] if is_right else SCALE[0]) if conclusion else YES_NO[not is_right]

    def _truth(self, question: str) -> Truth | None:
        """Return the truth of the question whose words are most like those of one in a prompt."""
        words = set(terms(question))

        def likeness(truth: Truth) -> float:
            own = set(terms(truth.question))
            return len(words & own) / (len(words | own) or 1)

        return max(self._truths, key=likeness, default=None)

    def _stated_in(self, question: str) -> Callable[[str], bool] | None:
        """Return the predicate of text that answers a question, of the exam or of the evaluation."""
        for text, _, answer in QUESTIONS:
            if text == question:
                return _matching(answer) if answer else None
        truth = self._truth(question)
        return truth.stated_in if truth else None

    def _stating(self, prompt: str) -> list[tuple[int, list[str]]]:
        """Return the fewest statements of each passage that state the answer, fewest first; none if none does."""
        question = _QUESTION.search(prompt)
        beginning = prompt[: question.end()] if question else ""
        if beginning not in self._known:
            stated_in = self._stated_in(question[1]) if question else None
            read = passages_of(prompt) if stated_in else []
            by_passage = [(number, _fewest(statements_of(text), stated_in)) for number, _, text in read if stated_in]
            self._known[beginning] = sorted(
                ((number, statements) for number, statements in by_passage if statements), key=lambda each: len(each[1])
            )
        return self._known[beginning]

    def _written(self, request: ModelRequest, draw: random.Random) -> str:
        prompt = _text(request)
        stating = self._stating(prompt)
        others = [
            (number, [statement]) for number, _, text in passages_of(prompt) for statement in statements_of(text)
            if all(number != each for each, _ in stating) and len(terms(statement)) > 4
        ]  # fmt: skip
        question = _QUESTION.search(prompt)
        topic = question[1] if question else ""
        if draw.random() < self._right:
            return self._cited(topic, stating[0], draw, is_faithful=True) if stating else NOT_FOUND
        error = draw.choice(list(Error))
        if error is Error.MALFORMED:
            return draw.choice(['{"answer": ["', "As an AI model, I cannot answer this.", "Sure! Here is the answer:"])
        if error is Error.INVENTED_COMMAND:
            return "Run `opsctl repair --all --force` to solve this [1]."
        if error is Error.NOT_FOUND or not (others or stating):
            return NOT_FOUND
        if error is Error.OTHER_PASSAGE or not stating:
            return self._cited(topic, draw.choice(others or stating), draw, is_faithful=False)
        number, statement = stating[0]
        return self._cited(topic, (number, [wrong(each, error, draw) for each in statement]), draw, is_faithful=False)

    def _cited(self, question: str, answer: tuple[int, list[str]], draw: random.Random, *, is_faithful: bool) -> str:
        number, statements = answer
        stated_in = self._stated_in(question) if is_faithful else None
        written = reworded(statements, draw, stated_in)
        reply = formed(written, number, question, draw)
        if stated_in and not stated_in(" ".join(each.text for each in claims(reply))):
            reply = "\n".join(f"{each} [{number}]" for each in statements)
        for claim in claims(reply):
            is_lead = not any(each.strip("`*").lower()[:20] in claim.text.lower() for each in (*written, *statements))
            (self._leads if is_lead else self._faithful if is_faithful else set()).add(claim.text.replace("\n", " "))
            (self._leads if is_lead else self._faithful if is_faithful else set()).add(claim.text)
        return reply


def _matching(expression: str) -> Callable[[str], bool]:
    return lambda text: re.search(expression, text, re.IGNORECASE | re.DOTALL) is not None


def _text(request: ModelRequest) -> str:
    return "\n".join(message.text for message in request.messages)


def passages_of(prompt: str) -> list[tuple[int, str, str]]:
    """Return the number, name and text of each passage in a prompt."""
    body = prompt.partition("Passages of documents")[2].partition("\n=====\nThe question:")[0]
    marks = list(_PASSAGE.finditer(body))
    ends = [each.start() for each in marks[1:]] + [len(body)]
    return [(int(mark[1]), mark[2], body[mark.end() : end].strip()) for mark, end in zip(marks, ends, strict=True)]


def statements_of(text: str) -> list[str]:
    """Return the sentences, list items, table rows and lines of code of a passage, each on one line."""
    statements: list[str] = []
    for block in blocks(text):
        match block.kind:
            case BlockKind.HEADING:
                continue
            case BlockKind.CODE:
                lines = [line.strip() for line in block.text.splitlines()]
                statements += [f"`{line}`" for line in lines if line and "`" not in line]
            case BlockKind.PARAGRAPH:
                statements += [each for each in sentences(block.text) if plain(each)]
            case _:
                statements += [" ".join(line.split()) for line in block.text.splitlines() if line.strip()]
    return statements


def _fewest(statements: Sequence[str], stated_in: Callable[[str], bool]) -> list[str]:
    """Return the shortest run of statements that states the answer; empty if none of at most LONGEST does."""
    for length in range(1, LONGEST + 1):
        for start in range(len(statements) - length + 1):
            run = list(statements[start : start + length])
            if stated_in("\n".join(run)):
                return run
    return []
