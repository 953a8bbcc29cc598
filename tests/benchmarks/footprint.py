"""How heavy the bot is: import time, idle memory of `plumbline serve`, and the time of an answer inside the process.

    python -m tests.benchmarks footprint [--json FILE]

Import time is the median of five fresh processes. Idle memory is the resident set of a bot on the sample company with
Slack and Teams loaded, after it has indexed and embedded everything. Answer times are of the evidence engine,
from the question to the finished answer with its badge stored, over the sample questions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bot.commands.commands import TERMINAL
from bot.commands.demo import SAMPLE_COMPANY
from bot.config.settings import load_settings
from bot.config.workspace import load_workspace
from bot.wiring.application import ingest, open_core
from core.model.conversation import Audience, Person, Platform, Question
from handlers.questions.answer_question import prepare_answer
from tests.benchmarks.load import bot_process
from tests.benchmarks.machine import machine, rested
from tests.benchmarks.slack_memory import remembering_slack
from tests.fakes.ports import some_ports

QUESTIONS = Path(__file__).parents[1] / "evaluation" / "sample_questions.jsonl"
ROUNDS = 10  # times that each sample question is asked
IMPORT = """
import time
started = time.perf_counter()
from bot.quick_imports import quick_imports
with quick_imports():
    import bot.cli, bot.server
print(time.perf_counter() - started)
"""


def import_seconds() -> float:
    runs = [
        subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True) for _ in range(5)
    ]
    return statistics.median(float(run.stdout) for run in runs)


async def idle_megabytes() -> float:
    with tempfile.TemporaryDirectory(prefix="plumbline-footprint-") as folder:
        async with remembering_slack() as (slack_url, _), bot_process(Path(folder), slack_url) as bot:
            await rested(bot.pid)
            status = await asyncio.to_thread(Path(f"/proc/{bot.pid}/status").read_text)
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))


async def answer_milliseconds() -> list[float]:
    texts = [json.loads(line)["question"] for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    workspace = load_workspace(SAMPLE_COMPANY / "plumbline.yaml")
    taken: list[float] = []
    with tempfile.TemporaryDirectory(prefix="plumbline-footprint-") as folder:
        settings = load_settings(data_dir=Path(folder), database_url="", qdrant_url="")
        async with open_core(settings, workspace) as core:
            await ingest(core)
            for number, text in enumerate(texts * ROUNDS):
                person = Person(Platform.TERMINAL, "benchmark")
                question = Question(f"benchmark:{number}", text, person, TERMINAL, Audience(), core.clock.now())
                started = time.perf_counter()
                await prepare_answer(
                    question, some_ports(retriever=core.knowledge.retriever, store=core.store, clock=core.clock)
                )
                taken.append((time.perf_counter() - started) * 1000)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description="Import time, idle memory and answer time of Plumbline.")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    answers = asyncio.run(answer_milliseconds())
    figures: dict[str, Any] = {
        "machine": machine(),
        "import_s": round(import_seconds(), 2),
        "idle_mb": round(asyncio.run(idle_megabytes())),
        "answers": len(answers),
        "answer_p50_ms": round(float(np.percentile(answers, 50)), 1),
        "answer_p95_ms": round(float(np.percentile(answers, 95)), 1),
    }
    print(json.dumps(figures, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
