"""Check the sentences of a language model against the passages that they cite: by rules, then by a judge.

Rules decide only what can be compared exactly, after both sides were normalised alike: numbers with their units and times,
commands and identifiers, names, and the negation of a clause. A sentence that is one of a passage, word by word, needs no
judge. Everything else is the judge's: the model itself, if it proved in its exam that it can tell. It reads all open
sentences in one call, each with the passage's sentence that is nearest to it, and says whether the passages say the
sentence, and whether the sentence says what they say: entailment in both directions.

A sentence that contradicts a rule is left out. The place of one that the judge refuses, or cannot be asked about, is taken by
the passage's own sentence, if one is near: what was shown while the model wrote is corrected and does not vanish.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise

from core.answering.evidence import NumberedPassages, Written, in_time
from core.answering.model_text import adds_literals, adds_names, affirmed, cleaned, is_negative, overstates, wording
from core.answering.reply import CitedSentence, Form
from core.answering.statements import Statement, sentences, statements
from core.knowledge.markdown import BlockKind, blocks, plain
from core.model.document import Passage
from core.model.errors import InvalidReply
from core.model_calls.judge import SourceVerdict, judged
from core.model_calls.prompts import Named
from core.model_calls.prompts import answering as prompts
from core.ports import LanguageModel

NEAR = 0.5  # share of a sentence's terms in a statement that may take its place
REMEMBERED = 20_000  # clauses that are kept in memory: some 20 MB

_CLAUSE = re.compile(
    r"[,;:—–]\s|\s\((?=\w)|\)\s|\s(?:and|(?<!nothing )but|while|whereas|which|because|so that)\s", re.IGNORECASE
)
_CONDITIONAL = re.compile(r"\b(?:if|when|once|unless|only|except|until|without|but|before|after)\b", re.IGNORECASE)
_ANSWER = re.compile(r"^(?:yes|no)[,.:;]\s+", re.IGNORECASE)  # and not the “No” of “No pod …”
_WORD = re.compile(r"[^\W_]+")


class Objection(StrEnum):
    """The reason why a sentence is not shown. The value is its name in metrics and evaluations."""

    CONFIDENCE = "states a confidence or calls people"
    LITERAL = "a number, command or identifier that the passages do not contain"
    PRODUCT = "a name that the passages do not contain"
    POLARITY = "denies what the passages say, or says what they deny"
    UNCITED = "no passage cited"
    REFUSED = "not what the passages say, by the model's own judgement"


@dataclass(frozen=True, slots=True)
class CitedText:
    """The text of the cited passages, and its statements."""

    text: str
    statements: tuple[str, ...]


def source_of(passages: Sequence[Passage]) -> CitedText:
    """Return the source of a sentence that cites these passages, with their titles and headings."""
    text = "\n".join(f"{each.document_id}\n{each.title}\n{each.heading}\n{each.text}" for each in passages)
    return CitedText(text, tuple(statement for each in passages for statement in _statements(each)))


def fault_of(sentence: str, question: str, source: CitedText) -> Objection | None:
    """Return the rule that a sentence contradicts; None if there is none.

    `sentence` is one line of prose without citation marks. What the question says may be repeated.
    """
    allowed, sentence = f"{source.text}\n{question}", _ANSWER.sub("", sentence)
    if overstates(sentence, source.text):
        return Objection.CONFIDENCE
    if adds_literals(sentence, allowed):
        return Objection.LITERAL
    if adds_names(sentence, allowed):
        return Objection.PRODUCT
    is_denied = not is_verbatim(sentence, source) and any(_is_denied(each, source) for each in clauses(sentence))
    return Objection.POLARITY if is_denied else None


def is_verbatim(sentence: str, source: CitedText) -> bool:
    """Return whether a sentence is a whole statement, or a statement and the one after it, word by word."""
    own_words = _words(sentence)
    own = [_words(each) for each in source.statements]
    return own_words in own or own_words in [f"{first} {second}" for first, second in pairwise(own)]


@lru_cache(maxsize=REMEMBERED)
def clauses(statement: str) -> tuple[str, ...]:
    """Return the clauses of a statement that have two terms or more."""
    return tuple(part for part in _CLAUSE.split(statement) if len(wording(affirmed(part))) > 1)


def _is_denied(clause: str, source: CitedText) -> bool:
    """Return whether clauses of the source have just these words, and all of them the other polarity."""
    own = wording(affirmed(clause))
    if _CONDITIONAL.search(clause):
        return False
    alike = [
        each
        for statement in source.statements
        for each in clauses(statement)
        if wording(affirmed(each)) == own and not _CONDITIONAL.search(each)
    ]
    return bool(alike) and all(is_negative(each) != is_negative(clause) for each in alike)


def _statements(passage: Passage) -> Iterator[str]:
    lead = ""
    for block in blocks(passage.text):
        match block.kind:
            case BlockKind.HEADING:
                lead = ""
            case BlockKind.PARAGRAPH:
                lines = sentences(plain(block.text))
                yield from lines
                lead = lines[-1] if lines and lines[-1].endswith(":") else ""
            case BlockKind.CODE | BlockKind.TABLE:
                yield from (f"{lead} {line}".strip() for line in block.text.splitlines() if line.strip())
            case _:
                yield from (f"{lead} {each}".strip() for each in sentences(plain(block.text)))


def _words(text: str) -> str:
    return " ".join(_WORD.findall(cleaned(text).lower()))


@dataclass(frozen=True, slots=True)
class SentenceVerdict:
    """A claim, and the fault for which it is not shown.

    An `is_open` one is for the judge to decide. An `is_quoted` one is a statement of a passage in the place of a sentence.
    """

    claim: CitedSentence
    fault: Objection | None = None
    is_open: bool = False
    is_quoted: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdicts on the claims of a reply, in order."""

    verdicts: tuple[SentenceVerdict, ...]

    @property
    def kept(self) -> tuple[SentenceVerdict, ...]:
        """Return the claims that may be shown: steps of a list all or none, and no lead without what it introduces."""
        is_broken = any(each.fault and each.claim.form is Form.STEP for each in self.verdicts)
        kept: list[SentenceVerdict] = []
        introduces = False
        for each in reversed(self.verdicts):
            is_lead = each.claim.is_lead
            if each.fault is None and not (is_broken and each.claim.form is Form.STEP) and (introduces or not is_lead):
                kept.append(each)
            introduces = introduces if is_lead else kept[-1:] == [each]
        return tuple(kept[::-1]) if any(not each.claim.is_lead for each in kept) else ()

    @property
    def claims(self) -> tuple[CitedSentence, ...]:
        return tuple(each.claim for each in self.kept)

    @property
    def is_own(self) -> bool:
        """Return whether the model wrote some of what may be shown, beside leads."""
        return any(not (each.is_quoted or each.claim.is_lead) for each in self.kept)

    @property
    def left_out(self) -> int:
        """Return the number of sentences that are not shown, without leads."""
        return sum(not each.claim.is_lead for each in self.verdicts) - sum(not each.claim.is_lead for each in self.kept)

    @property
    def quoted(self) -> int:
        """Return the number of sentences that a passage's own words stand for."""
        return sum(each.is_quoted for each in self.kept)


def by_rules(statements: Sequence[CitedSentence], query: str, evidence: NumberedPassages) -> Checked:
    """Return the verdicts of the rules."""
    return Checked(tuple(_by_rules(claim, query, evidence) for claim in statements))


def _by_rules(claim: CitedSentence, query: str, evidence: NumberedPassages) -> SentenceVerdict:
    cited = evidence.cited(claim.numbers)
    if not cited and not claim.is_lead:
        return SentenceVerdict(claim, Objection.UNCITED)
    source = source_of(cited or list(evidence.passages.values()))
    if claim.form is Form.CODE:
        lines = claim.text.splitlines()[1:-1]
        added = any(
            adds_literals(f"`{line.strip('$ `')}`", f"{source.text}\n{query}") for line in lines if line.strip("$ `")
        )
        return SentenceVerdict(claim, Objection.LITERAL if added else None)
    fault = fault_of(claim.text, query, source)
    return SentenceVerdict(claim, fault, is_open=fault is None and not is_verbatim(claim.text, source))


async def by_judge(checked: Checked, written: Written, model: LanguageModel | None) -> Checked:
    """Return the verdicts with those of the model on the claims that the rules leave open.

    The place of a claim that it refuses, or about which there is no model to ask or none that answers in time, is taken by
    the nearest statement of the passages that it cites. A statement stands once. If the model's judgement cannot be read,
    all these claims are left out: nothing that such a model says is relied on.
    """
    open_claims = [each.claim for each in checked.verdicts if each.is_open]
    approved = (
        await in_time(_approved(open_claims, written, model), written) if model is not None and open_claims else None
    )
    confirmed = {claim for claim, is_right in zip(open_claims, approved or (), strict=False) if is_right}
    verdicts: list[SentenceVerdict] = []
    for each in checked.verdicts:
        verdict = each
        if each.is_open:
            refused = (
                SentenceVerdict(each.claim, Objection.REFUSED)
                if approved == []
                else _quoted(each.claim, written.evidence)
            )
            verdict = replace(each, is_open=False) if each.claim in confirmed else refused
        if verdict.fault or all(verdict.claim.text != one.claim.text for one in verdicts):
            verdicts.append(verdict)
    return Checked(tuple(verdicts))


def _quoted(claim: CitedSentence, evidence: NumberedPassages) -> SentenceVerdict:
    terms = wording(claim.text)
    quotes = [
        (len(terms & wording(each.text)), number, each)
        for number in claim.numbers
        for each in (nearest_statement(claim, passage) for passage in evidence.cited([number]))
        if each is not None and not claim.is_lead
    ]
    shared, number, statement = max(quotes, key=lambda quote: quote[0], default=(0, 0, None))
    if statement is None or not terms or shared < NEAR * len(terms):
        return SentenceVerdict(claim, Objection.REFUSED)
    return SentenceVerdict(CitedSentence(statement.text, (number,)), is_quoted=True)


def nearest_statement(claim: CitedSentence, passage: Passage) -> Statement | None:
    """Return the statement of a passage that shares the most terms with a claim; None if it has none."""
    terms = wording(claim.text)
    return max(statements(passage), key=lambda each: len(terms & wording(each.text)), default=None)


async def _approved(claims: Sequence[CitedSentence], written: Written, model: LanguageModel) -> list[bool]:
    """Return of each claim whether the model says that its passages say just that; of a lead, that it only introduces.

    Empty if it gives no verdicts.
    """
    statements: list[Named] = []
    for claim in claims:
        near = (nearest_statement(claim, each) for each in written.evidence.cited(claim.numbers))
        marks = "".join(f"[{number}]" for number in claim.numbers)
        statements.append(Named(f"{claim.text} {marks}", next((each.text for each in near if each), "")))
    messages = prompts.judge(written.evidence.shown, written.query, statements)
    try:
        verdicts = await judged(messages, len(statements), model, written.writing)
    except InvalidReply:
        return []  # such a judge says nothing of what it wrote
    return [
        verdict is SourceVerdict.SAID or (verdict is SourceVerdict.LEAD and claim.is_lead)
        for claim, verdict in zip(claims, verdicts, strict=True)
    ]
