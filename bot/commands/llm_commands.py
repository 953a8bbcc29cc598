"""The command `plumbline llm check`."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from time import perf_counter, perf_counter_ns
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from adapters.http import client_session
from bot.config.settings import Settings
from bot.config.workspace import load_workspace
from bot.wiring.application import EXAM_FILE, KeptExam, llama_server
from core.answering.model_exam import FINDS, USES_TOOLS, WRITES, Marks, examined, skill_of, skill_under
from core.model.errors import ConfigurationError, PlumblineError
from core.model.language_model import Abilities, ChatMessage, ModelRequest, Role
from core.model_calls.choice import Skill, Use, structured
from core.ports import LanguageModel


async def run_check(settings: Settings, url: str, out: Console) -> int:
    """Print the abilities of the server, and keep the outcome of the exam of that in PLUMBLINE_LLM_URL for `serve`.

    Returns exit code 1 if a needed ability is missing.
    """
    address = url or settings.llm_url
    if not address:
        raise ConfigurationError("No language model is set: give --url, or set PLUMBLINE_LLM_URL.")
    trust = load_workspace(settings.config).models.trust()
    async with client_session() as session:
        model = llama_server(address, settings, session)
        passed: list[Marks] = []
        abilities = [ability async for ability in check_model(model, passed.append)]
        table = Table("ability", "", "needed", "found", title=f"{model.name} at {address}", title_justify="left")
        for ability in abilities:
            mark, style = ("✓", "green") if ability.works else ("✗", "red") if ability.needed else ("!", "yellow")
            table.add_row(ability.name, Text(mark, style), "yes" if ability.needed else "no", Text(ability.found))
        out.print(table)
        for marks in passed:
            if not url:
                KeptExam(settings.data_dir / EXAM_FILE, model).save(marks)
            skills = {use: skill_under(trust.get(use, settings.llm_use), marks) for use in Use}
            for line in consequences(skills, await model.abilities()):
                out.print(Text(f"• {line}"))
    return int(any(ability.needed and not ability.works for ability in abilities))


def consequences(skills: Mapping[Use, Skill | None], able: Abilities) -> Iterator[str]:
    """Yield what the bot does with a model of these skills, on a server with these abilities."""
    answers, causes, owners = (skills[use] for use in (Use.ANSWERS, Use.CAUSES, Use.OWNERS))
    if not any(skills.values()):
        yield "The model is not used. To use it in spite of that, set `use: always` (docs/language-models.md)."
        return
    always = ", also where the evidence engine is certain" if answers and answers.always else ""
    if answers is None:
        yield "Answers: the evidence engine alone."
    elif answers.writes:
        yield f"Answers: it writes them{always}, and each sentence is checked against its sources."
    else:
        yield f"Answers: it chooses among excerpts{always}."
    yield f"Causes: {_done(causes, causes and causes.tools, 'it investigates with tools', 'it ranks them')}."
    yield f"Owners: {_done(owners, owners and owners.writes, 'it plays the managers of teams', 'it decides on them')}."
    if not able.odds:
        yield "Without probabilities, a choice takes 16 short replies."
    if not able.schemas:
        yield "Without JSON schemas, a reply that is not valid is repaired or asked for again."
    if not able.counts:
        yield "Without a tokenizer, lengths are estimated, and about two thirds of the context are used."


def _done(skill: Skill | None, is_able: float | None, able: str, less: str) -> str:
    return "the evidence engine alone" if skill is None else able if is_able else less


LEAST_CONTEXT = 4_096  # tokens: instructions, a handful of passages and a reply
SCHEMA_ROUNDS = 3  # structured replies with different seeds
SPEED_TOKENS = 64  # tokens generated to measure the speed
DEADLINE = 600.0  # seconds for one request; long, because a slow server may have the ability
ABILITY_TIMEOUT = 900.0  # seconds for one ability
EVIDENCE = "The refunds worker of the payment gateway retries a failed transfer three times, a minute apart. " * 24


@dataclass(frozen=True, slots=True)
class Ability:
    """An ability of a server, with the test result. The model is unusable without a `needed` one."""

    name: str
    works: bool
    found: str
    needed: bool


@dataclass(frozen=True, slots=True)
class ShortReply:
    """A structured reply whose fields cannot grow long."""

    answer: Literal["yes", "no", "unsure"]
    score: Literal[1, 2, 3, 4, 5]


Outcome = tuple[bool, str]  # whether it works, and the details


async def check_model(model: LanguageModel, keep: Callable[[Marks], None] = lambda _: None) -> AsyncIterator[Ability]:
    """Test every ability, needed ones first. A failure does not stop the following tests.

    `keep` receives the marks of the model's exam.
    """
    checks: list[tuple[str, bool, Callable[[LanguageModel], Awaitable[Outcome]]]] = [
        ("answers", True, _answers),
        ("context", True, _context),
        ("JSON", True, _json),
        ("schemas", False, _schemas),
        ("tokenizer", False, _tokenizer),
        ("probabilities", False, _probabilities),
        ("prompt cache", False, _cache),
        ("samples", False, _samples),
        ("exam", False, partial(_exam, keep=keep)),
        ("speed", False, _speed),
    ]
    for name, needed, check in checks:
        try:
            async with asyncio.timeout(ABILITY_TIMEOUT):
                works, finding = await check(model)
        except PlumblineError as error:
            works, finding = False, str(error)
        except TimeoutError:
            works, finding = False, f"not within {ABILITY_TIMEOUT:.0f} s"
        yield Ability(name, works, finding, needed)


def _request(question: str, max_tokens: int, seed: int = 0, temperature: float = 0.0, shared: str = "") -> ModelRequest:
    messages = (
        ChatMessage(Role.SYSTEM, f"Answer from the evidence, briefly.\n{shared}"),
        ChatMessage(Role.USER, question),
    )
    return ModelRequest(
        messages, max_tokens=max_tokens, seed=seed, temperature=temperature, requester="llm check", deadline=DEADLINE
    )


async def _answers(model: LanguageModel) -> Outcome:
    started = perf_counter()
    reply = await model.generate(_request("Is the payment gateway up?", max_tokens=8))
    return reply.generated_tokens > 0, f"{reply.generated_tokens} tokens in {perf_counter() - started:.2f} s"


async def _context(model: LanguageModel) -> Outcome:
    tokens = await model.context_tokens()
    return tokens >= LEAST_CONTEXT, f"{tokens} tokens for a prompt and its reply; {LEAST_CONTEXT} are needed"


async def _tokenizer(model: LanguageModel) -> Outcome:
    empty, short, long = [await model.count_tokens(text) for text in ("", "refunds", EVIDENCE)]
    counts = (await model.abilities()).counts
    finding = f"{len(EVIDENCE)} characters are {'' if counts else 'estimated to be '}{long} tokens"
    return counts and empty == 0 < short < long, finding


async def _schemas(model: LanguageModel) -> Outcome:
    works = (await model.abilities()).schemas
    return works, "the server makes replies valid" if works else "the server does not heed them"


async def _json(model: LanguageModel) -> Outcome:
    for seed in range(SCHEMA_ROUNDS):
        await structured(model, _request("Is it up?", max_tokens=64, seed=seed, temperature=1.0), ShortReply)
    return True, f"{SCHEMA_ROUNDS} of {SCHEMA_ROUNDS} replies valid under their schema"


async def _probabilities(model: LanguageModel) -> Outcome:
    has_odds = (await model.abilities()).odds
    request = _request("Is it up?", max_tokens=8)
    started = perf_counter()
    first = await model.expect(request, ["yes", "no"])
    second = await model.expect(request, ["yes", "no"])
    elapsed = perf_counter() - started
    exact = all(math.isclose(first[choice], second[choice], abs_tol=0.01) for choice in first)
    return has_odds and exact and math.isclose(math.fsum(first.values()), 1.0, abs_tol=1e-6), (
        f"{'' if has_odds else 'not reported; by samples '}yes {first['yes']:.2f}, no {first['no']:.2f}, {'the same' if exact else 'not the same'} when asked again; "
        f"{elapsed / 2:.2f} s each"
    )


async def _cache(model: LanguageModel) -> Outcome:
    await model.generate(_request("How often is a transfer retried?", max_tokens=1, shared=EVIDENCE))
    reply = await model.generate(_request("How far apart are the retries?", max_tokens=1, shared=EVIDENCE))
    return (
        reply.cached_tokens >= reply.prompt_tokens / 2,
        f"{reply.cached_tokens} of {reply.prompt_tokens} prompt tokens of a second question came from the cache",
    )


async def _samples(model: LanguageModel) -> Outcome:
    started = perf_counter()
    replies = await model.sample(_request("Why?", max_tokens=16, temperature=1.0, shared=EVIDENCE), 4)
    different, parallel = len({reply.text for reply in replies}), (await model.abilities()).parallel
    finding = f"4 replies, {different} different, in {perf_counter() - started:.2f} s; {parallel} at a time"
    return len(replies) == 4, finding


async def _exam(model: LanguageModel, keep: Callable[[Marks], None]) -> Outcome:
    marks = await examined(model, ModelRequest((), requester="llm check", deadline=DEADLINE))
    keep(marks)
    return skill_of(marks) is not None, f"{marks}; {FINDS}, {WRITES} and {USES_TOOLS} are needed"


async def _speed(model: LanguageModel) -> Outcome:
    fresh = f"{perf_counter_ns()} {EVIDENCE}"  # not in the cache
    started = perf_counter()
    prompt = await model.generate(_request("Why?", max_tokens=1, shared=fresh))
    read = perf_counter()
    reply = await model.generate(_request("Why?", max_tokens=SPEED_TOKENS, shared=fresh))
    ended = perf_counter()
    computed = (prompt.prompt_tokens - prompt.cached_tokens) / (read - started)
    generated = reply.generated_tokens / (ended - read)
    return reply.generated_tokens > 0, f"{computed:.0f} prompt tokens/s, {generated:.0f} generated tokens/s"
