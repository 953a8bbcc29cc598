"""What a model's confidence costs: plain independent sampling against shared prompts and expectations.

    python -m tests.benchmarks model-cost [--json FILE]

Both ways make the product's own LM-PACE estimate of one case, COE and RCE with k1 analyses and k2 scores on each, at
the same real llama-server in one run. The plain way draws every analysis and every score one by one, each with its
prompt computed from the beginning. Our way draws the analyses together from one prompt, keeps what prompts have in
common, and reads the mean score from the log probabilities of one constrained reply. The model has random weights: it
says nothing of sense, and computes as many tokens as a trained one. A token of it is about a byte.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
from rich.console import Console
from rich.table import Table

from adapters.llama.server import LlamaServer
from core.confidence.model_estimator import Claim, Effort, Reference, estimate
from core.model.language_model import ModelReply, ModelRequest
from tests.external.llama_servers import llama_server
from tests.fakes.random_model import write_random_model

EFFORT = Effort(analyses=4)  # k1
SAMPLES = 8  # k2, of the plain way
SLOTS = 4
SLOT_CONTEXT = 8_192  # tokens
DEADLINE = 600.0  # seconds for one reply
CLAIM = Claim(
    "now",
    "Checkout fails with timeouts since 14:05. The payment service answers 503 and its pods restart.",
    "The disk of the payment service is full.",
    datetime(2026, 3, 2, 14, 30, tzinfo=UTC),
)
REFERENCES = [
    Reference(
        f"{service}-{number}",
        f"The {service} service was slow and its pods restarted. Cause: {cause}. It was mended by a restart after the "
        "configuration was set back, which took twenty minutes; the alert had come from the latency of the till.",
    )
    for service in ("payment", "cart", "search", "catalogue")
    for number, cause in enumerate(("a full disk", "an expired certificate", "connections that ran out"))
]


@dataclass(slots=True)
class Cost:
    """What the server computed, summed over its replies."""

    replies: int = 0
    prompt_tokens: int = 0  # of all prompts together
    computed_prompt_tokens: int = 0  # of those, not taken from the cache
    generated_tokens: int = 0
    seconds: float = 0.0

    @property
    def computed_tokens(self) -> int:
        return self.computed_prompt_tokens + self.generated_tokens

    def add(self, reply: ModelReply) -> None:
        self.replies += 1
        self.prompt_tokens += reply.prompt_tokens
        self.computed_prompt_tokens += reply.prompt_tokens - reply.cached_tokens
        self.generated_tokens += reply.generated_tokens


class PlainSampling(LlamaServer):
    """Draws one reply after the other, and has the server compute each prompt from its beginning."""

    async def sample(self, request: ModelRequest, count: int) -> list[ModelReply]:
        replies: list[ModelReply] = []
        for number in range(count):
            grown = await self._several(replace(request, seed=request.seed + number), {"cache_prompt": False})
            replies.append(grown[0].reply())
        return replies

    async def expect(self, request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        """Return the shares of SAMPLES labels drawn, as in the paper, instead of the label probabilities."""
        drawn = await self.sample(replace(request, schema={"enum": list(choices)}), SAMPLES)
        counts = Counter(reply.text.strip().strip('"') for reply in drawn)
        return {choice: counts[choice] / len(drawn) for choice in choices}


async def cost_of(kind: type[LlamaServer], url: str, session: aiohttp.ClientSession) -> Cost:
    cost = Cost()
    model = kind(url, session, on_reply=cost.add)
    await model.context_tokens()
    started = time.perf_counter()
    request = ModelRequest((), deadline=DEADLINE)
    await estimate(model, CLAIM, REFERENCES, request, EFFORT)
    cost.seconds = time.perf_counter() - started
    return cost


async def costs() -> dict[str, Cost]:
    """Each way on a server of its own, so that neither finds the other's prompts in the cache."""
    ways = {"plain": PlainSampling, "plumbline": LlamaServer}
    by_kind: dict[str, Cost] = {}
    with tempfile.TemporaryDirectory(prefix="plumbline-model-cost-") as folder:
        weights = write_random_model(Path(folder) / "random.gguf")
        for name, kind in ways.items():
            async with (
                llama_server("native", weights, slots=SLOTS, slot_context=SLOT_CONTEXT) as server,
                aiohttp.ClientSession() as session,
            ):
                by_kind[name] = await cost_of(kind, server.url, session)
    return by_kind


def figures_of(by_kind: dict[str, Cost]) -> dict[str, object]:
    plain, ours = by_kind["plain"], by_kind["plumbline"]
    return {
        "analyses": EFFORT.analyses,
        "scores": SAMPLES,
        **{name: {**asdict(cost), "computed_tokens": cost.computed_tokens} for name, cost in by_kind.items()},
        "times_fewer_tokens": round(plain.computed_tokens / ours.computed_tokens, 1),
        "times_faster": round(plain.seconds / ours.seconds, 1),
        "cached_share": round(1 - ours.computed_prompt_tokens / ours.prompt_tokens, 3),
    }


def shown(by_kind: dict[str, Cost], figures: dict[str, object]) -> Table:
    table = Table(title=f"One estimate: {EFFORT.analyses} analyses, {SAMPLES} scores on each, COE and RCE")
    for heading in ("", "replies", "prompt tokens", "of them computed", "generated", "computed in all", "seconds"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, cost in by_kind.items():
        counts = (cost.replies, cost.prompt_tokens, cost.computed_prompt_tokens, cost.generated_tokens)
        table.add_row(name, *(f"{count:,}" for count in (*counts, cost.computed_tokens)), f"{cost.seconds:.1f}")
    table.caption = f"{figures['times_fewer_tokens']} times fewer tokens, {figures['times_faster']} times as fast"
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description="What a confidence estimate costs on a real llama-server.")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    by_kind = asyncio.run(costs())
    figures = figures_of(by_kind)
    Console(width=120).print(shown(by_kind, figures))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
