"""Command lines that start a llama.cpp server on the available hardware."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from core.model.errors import ConfigurationError

HUB = "https://huggingface.co"  # the model hub
DEFAULT_MODEL = "unsloth/Qwen3-4B-Instruct-2507-GGUF:Q4_K_M"
SLOT_TOKENS = 8_192  # context per slot: a prompt with its evidence, and the reply
GPU_SLOTS = 8  # parallel requests on a GPU
CPU_SLOTS = 2  # more slots gain little on a CPU
BATCH_TOKENS = 512  # prompt tokens per batch: cancellations are noticed between batches, which take seconds on a CPU
MOST_THREADS = 16  # generation is limited by memory bandwidth, and more threads slow it down
TOKEN_BYTES = 144 * 1024  # key and value of one token in a 4–8 B model (36 layers, 8 heads of 128, 16 bits)
LAYERS = 32  # of a 7–8 B model
GPU_RESERVE = 1 << 30  # GPU memory in bytes kept free for scratch buffers and the desktop
ALL_LAYERS = 999  # more than any model has


@dataclass(frozen=True, slots=True)
class Hardware:
    """Resources for a server: processor cores, and the free memory of all GPUs in bytes (0: no GPU)."""

    cores: int
    gpu_memory: int


@dataclass(frozen=True, slots=True)
class Launch:
    """A model file with its size in bytes, and the address to serve it on."""

    model: Path
    model_bytes: int
    host: str
    port: int


async def hardware() -> Hardware:
    """Return the hardware of this machine. GPUs are detected with `nvidia-smi`."""
    return Hardware(cores=os.cpu_count() or 1, gpu_memory=await _gpu_memory())


async def _gpu_memory() -> int:
    if shutil.which("nvidia-smi") is None:
        return 0
    process = await asyncio.create_subprocess_exec(
        "nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits", stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate()
    mebibytes = [int(line) for line in printed.decode().split() if line.isdigit()] if process.returncode == 0 else []
    return sum(mebibytes) << 20


def server_command(launch: Launch, machine: Hardware) -> list[str]:
    """Return the program and its arguments: `llama-server` if installed, otherwise llama-cpp-python's server.

    Raises ConfigurationError if neither is installed.
    """
    native = shutil.which("llama-server")
    if native is not None:
        return [native, *native_arguments(launch, machine)]
    from importlib.util import find_spec

    if find_spec("llama_cpp") is None:
        raise ConfigurationError(
            "No llama.cpp server is installed: put llama-server on the PATH, or install plumbline[llm]."
        )
    return [sys.executable, "-m", "llama_cpp.server", *python_arguments(launch, machine)]


def native_arguments(launch: Launch, machine: Hardware) -> list[str]:
    """Return arguments for `llama-server`: parallel slots, all layers on the GPU if they fit, metrics, no web page.

    If the layers do not fit, the server decides the split.
    """
    slots = parallel_slots(launch.model_bytes, machine)
    layers = gpu_layers(launch.model_bytes, slots, machine)
    return [
        *("--model", str(launch.model), "--alias", launch.model.stem),
        *("--host", launch.host, "--port", str(launch.port)),
        *("--parallel", str(slots), "--ctx-size", str(slots * SLOT_TOKENS)),
        *("--threads", str(threads(machine))),
        *(("--n-gpu-layers", str(layers)) if layers in {0, ALL_LAYERS} else ()),
        *("--batch-size", str(BATCH_TOKENS)),
        *("--cont-batching", "--metrics", "--jinja", "--no-webui"),
    ]


def python_arguments(launch: Launch, machine: Hardware) -> list[str]:
    """Return arguments for `llama_cpp.server`, which serves one request at a time and must not interrupt it for the
    next.
    """
    return [
        *("--model", str(launch.model), "--model_alias", launch.model.stem),
        *("--host", launch.host, "--port", str(launch.port)),
        *("--n_ctx", str(SLOT_TOKENS), "--n_threads", str(threads(machine))),
        *("--n_gpu_layers", str(gpu_layers(launch.model_bytes, 1, machine))),
        *("--interrupt_requests", "false"),
    ]


def threads(machine: Hardware) -> int:
    """Return the number of threads of the server, which leaves one core to its clients."""
    return max(1, min(machine.cores - 1, MOST_THREADS))


def parallel_slots(model_bytes: int, machine: Hardware) -> int:
    """Return the number of slots whose contexts fit beside the model, from 1 to GPU_SLOTS; CPU_SLOTS without a GPU."""
    if not machine.gpu_memory:
        return CPU_SLOTS
    room = machine.gpu_memory - GPU_RESERVE - model_bytes
    return max(1, min(GPU_SLOTS, room // (SLOT_TOKENS * TOKEN_BYTES)))


def gpu_layers(model_bytes: int, slots: int, machine: Hardware) -> int:
    """Return all layers if the model and its contexts fit into the GPUs, otherwise the fitting share of a typical
    model.
    """
    if not machine.gpu_memory:
        return 0
    needed = model_bytes + slots * SLOT_TOKENS * TOKEN_BYTES
    room = max(0, machine.gpu_memory - GPU_RESERVE)
    return ALL_LAYERS if needed <= room else LAYERS * room // needed
