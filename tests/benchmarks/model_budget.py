"""What incidents and a question cost at a language model of which every call takes a second.

    python -m tests.benchmarks model-budget [--seconds 1.0] [--json FILE]

The incidents are those of the sample company, of which the changes, the past incidents and the service of the alert are
withheld: the evidence names neither a cause nor an owner. The managers of the teams agree at once, or never. The model is
simulated, and right; it has four slots, behind the product's queue. A call is one reply; a token is four characters, and none
comes from a cache. `shared` is the share of the prompts with which an earlier prompt of the same case begins: what a server
that keeps prompts need not read again. `waited` are the seconds in which a call was under way, `first` is when the first
sentence of the model's answer is shown, in seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import shutil
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog
from rich.console import Console

from adapters.alerts.alertmanager import FORMAT
from adapters.model_queue import ModelQueue
from bot.commands.demo import SAMPLE_COMPANY, scenarios, stage
from bot.config.settings import Settings
from bot.config.workspace import load_workspace
from bot.evaluation.report import print_rows, write_json
from bot.wiring.application import Core, ingest, open_core
from bot.wiring.ports import all_ports
from core.model.answer import Answer
from core.model.conversation import PUBLIC, Audience, Person, Place, Platform, Question
from core.model.language_model import Abilities, ModelReply, ModelRequest, OnText, ignore_text
from core.model_calls.choice import Trust, Use
from core.ports import LanguageModel
from core.rca.agent.conclusion import situation
from core.rca.observation_tools import READ_LOGS
from handlers.common.examine_model import ExaminedModel
from handlers.common.ports import Ports
from handlers.incidents.investigate_incident import find_cause, observe
from handlers.incidents.open_incident import open_incident
from handlers.questions.answer_question import prepare_answer
from tests.benchmarks.simulated import SimulatedModel, Truth
from tests.benchmarks.simulated_agent import Cause, SimulatedInvestigator
from tests.benchmarks.simulated_teams import SimulatedTeams
from tests.fakes.messenger import RecordingMessenger

SLOTS = 4
STREAMED = 0.8  # share of a call after which its text is there
PLACE = Place(Platform.CONSOLE, "incidents")
QUESTION = Truth(
    "what do I lose if I throw the cached build results of a service away?", lambda text: "slow builds" in text
)


def _common(one: str, other: str) -> int:
    """Return the number of characters with which both begin."""
    return next(
        (place for place, pair in enumerate(zip(one, other, strict=False)) if len(set(pair)) > 1),
        min(len(one), len(other)),
    )


class Paced:
    """A LanguageModel that takes some seconds for each reply, SLOTS at a time, and counts what it was asked."""

    def __init__(self, model: LanguageModel, seconds: float) -> None:
        self._model, self._seconds = model, seconds
        self.calls = 0
        self.prompt_tokens = 0
        self._prompts: list[str] = []
        self._begun = 0  # characters with which an earlier prompt begins
        self.waited = 0.0  # seconds in which at least one call was under way
        self._under_way, self._began = 0, 0.0

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def shared(self) -> float:
        return self._begun / (sum(map(len, self._prompts)) or 1)

    async def context_tokens(self) -> int:
        return await self._model.context_tokens()

    async def count_tokens(self, text: str) -> int:
        return await self._model.count_tokens(text)

    async def abilities(self) -> Abilities:
        return Abilities(parallel=SLOTS)

    @contextmanager
    def _counted(self, request: ModelRequest, replies: int = 1) -> Generator[None]:
        self.calls += replies
        self.prompt_tokens += sum(len(each.text) for each in request.messages) // 4
        prompt = "\0".join(f"{each.role}\0{each.text}" for each in request.messages)
        self._begun += max((_common(prompt, earlier) for earlier in self._prompts), default=0)
        self._prompts.append(prompt)
        self._began = self._began if self._under_way else time.monotonic()
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            self.waited += 0.0 if self._under_way else time.monotonic() - self._began

    async def generate(self, request: ModelRequest, on_text: OnText = ignore_text) -> ModelReply:
        with self._counted(request):
            reply = await self._model.generate(request)
            await asyncio.sleep(STREAMED * self._seconds)
            on_text(reply.text)
            await asyncio.sleep((1 - STREAMED) * self._seconds)
            return reply

    async def sample(self, request: ModelRequest, count: int) -> list[ModelReply]:
        with self._counted(request, count):
            await asyncio.sleep(self._seconds * -(-count // SLOTS))
            return await self._model.sample(request, count)

    async def expect(self, request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        with self._counted(request):
            await asyncio.sleep(self._seconds)
            return await self._model.expect(request, choices)


class Manager(SimulatedTeams):
    """Plays managers, and investigates. Managers that do not agree vote for their own teams as long as they are asked."""

    def __init__(self, owner: str, cause: Cause, *, agrees: bool) -> None:
        super().__init__({cause.incident: owner}, 1.0)
        self._investigator = SimulatedInvestigator([cause], 1.0)
        self._agrees = agrees

    def _ballot(self, owner: str, prompt: str, allowed: Sequence[str]) -> str:
        if self._agrees:
            return super()._ballot(owner, prompt, allowed)
        own = [each for each in allowed if f"manager of team {each.title()}" in prompt]
        return json.dumps({"reason": "It is ours.", "team": (own or allowed)[0]})


@dataclass(frozen=True, slots=True)
class Case:
    """The cost of a question or an incident, and what was found; `first` is None where nothing is shown meanwhile."""

    name: str
    calls: int
    prompt_tokens: int
    shared: float
    waited: float
    seconds: float
    first: float | None
    result: str


async def of_incident(core: Core, name: str, seconds: float, *, agrees: bool) -> Case:
    recording, live = SAMPLE_COMPANY / "live" / name, (core.settings.config or Path()).parent / "live"
    shutil.rmtree(live, ignore_errors=True)
    body = json.loads(stage(recording, live / name, datetime.now(UTC)))
    (live / name / "changes.jsonl").write_text("")
    expected = json.loads((recording / "expected.json").read_text("utf-8"))
    for labels in (body["commonLabels"], *(each["labels"] for each in body["alerts"])):
        labels.pop("service", None)
        labels.pop("namespace", None)
    title = f"{name}, the managers {'agree' if agrees else 'dispute'}"
    body["groupKey"] += title
    ports = all_ports(core, {Platform.CONSOLE: RecordingMessenger()})
    delivery = FORMAT.parse(json.dumps(body).encode(), datetime.now(UTC))
    assert delivery is not None
    opened = await open_incident(delivery, store=core.store, places_for=lambda _: (PLACE,), new_id=lambda: title)
    assert opened is not None
    observations = await observe(opened, await ports.chats.audience_of(opened), ports)
    words = [each.lower() for group in expected["keywords"] for each in group]

    def shows(line: str) -> bool:
        return any(each in line.lower() for each in words)

    service = next((each.service for each in observations.logs if shows(each.text)), "")
    calls = [{"tool": READ_LOGS, "service": service}]
    stated = (expected["cause"] or "")[:280]
    cause = Cause(situation(observations), service, frozenset(), shows, stated, calls)
    model = Paced(Manager(expected["owner"] or "fleet", cause, agrees=agrees), seconds)
    ports_used = await asking(ports, model)
    began = time.monotonic()
    await find_cause(opened.id, ports_used)
    took = time.monotonic() - began
    async with core.store.transaction() as transaction:
        incident = await transaction.incidents.get(opened.id)
    assert incident is not None
    owner = incident.findings.likely_owner
    result = f"{owner.team_name if owner else 'no owner'}; {incident.findings.asked}"
    return Case(title, model.calls, model.prompt_tokens, model.shared, model.waited, took, None, result)


async def of_question(core: Core, seconds: float) -> Case:
    model = Paced(SimulatedModel([QUESTION], 1.0), seconds)
    ports = await asking(all_ports(core, {Platform.CONSOLE: RecordingMessenger()}), model)
    asker, audience = Person(Platform.CONSOLE, "ada"), Audience(frozenset({PUBLIC}))
    question = Question("q", QUESTION.question, asker, PLACE, audience, datetime.now(UTC))
    began, shown = time.monotonic(), list[float]()

    async def show(answer: Answer) -> None:
        shown.extend([time.monotonic() - began] if answer.is_composed else [])

    answer = await prepare_answer(question, ports, show=show)
    took = time.monotonic() - began
    return Case(
        "a question",
        model.calls,
        model.prompt_tokens,
        model.shared,
        model.waited,
        took,
        min([*shown, took]),
        answer.engine,
    )


async def asking(ports: Ports, model: Paced) -> Ports:
    """Return the ports with this model behind the product's queue, trusted for everything."""

    async def slots() -> int:
        return SLOTS

    queue = ModelQueue(model, slots, "simulated")
    await queue.check_health()
    examined = ExaminedModel(queue, trust=dict.fromkeys(Use, Trust.ALWAYS))
    return replace(ports, models=replace(ports.models, examined=examined, position=queue.position))


async def measured(seconds: float, names: Sequence[str]) -> list[Case]:
    with TemporaryDirectory(prefix="plumbline-budget-") as folder:
        company = Path(folder) / "company"
        shutil.copytree(SAMPLE_COMPANY, company, ignore=shutil.ignore_patterns("live", "__pycache__"))
        (company / "live").mkdir()
        (company / "incidents.jsonl").write_text("")
        environment = {"DATA_DIR": Path(folder) / "data", "CONFIG": company / "plumbline.yaml", "EMBEDDINGS": "none"}
        settings = Settings.model_validate({f"PLUMBLINE_{name}": value for name, value in environment.items()})
        async with open_core(settings, load_workspace(settings.config)) as core:
            await ingest(core)
            incidents = [
                await of_incident(core, name, seconds, agrees=agrees) for agrees in (True, False) for name in names
            ]
            return [await of_question(core, seconds), *incidents]


def main() -> None:
    parser = argparse.ArgumentParser(description="What incidents and a question cost at a slow language model.")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each call")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    cases = asyncio.run(measured(arguments.seconds, scenarios()))
    rows = [
        (
            each.name,
            f"{each.calls}",
            f"{each.prompt_tokens:,}",
            f"{each.shared:.0%}",
            f"{each.waited:.1f}",
            f"{each.seconds:.1f}",
            f"{each.first:.1f}" if each.first else "",
            each.result,
        )
        for each in cases
    ]
    print_rows(
        Console(width=160),
        ("case", "calls", "prompt tokens", "shared", "at the model", "seconds", "first", "result"),
        rows,
    )
    write_json({"seconds": arguments.seconds, "cases": [asdict(each) for each in cases]}, arguments.json)
