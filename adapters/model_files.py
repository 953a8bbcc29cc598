"""Model files (GGUF) from a model hub: found by name, downloaded once with resumption, and verified."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from core.model.errors import MalformedInput, Unavailable

QUANTISATION = "Q4_K_M"  # 4 bits per weight, a common compromise between size and quality
CHUNK = 1 << 20  # bytes per read
TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=60)  # seconds; a large file takes long

OnProgress = Callable[[int, int], None]  # bytes done, total bytes


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file on the hub. `size` is in bytes; `sha256` is hexadecimal, empty if the hub does not state it."""

    repository: str
    path: str
    size: int
    sha256: str


async def find_model_file(session: aiohttp.ClientSession, name: str, hub: str) -> ModelFile:
    """Return the file named OWNER/REPOSITORY[:QUANTISATION] or OWNER/REPOSITORY/PATH.gguf.

    Raises MalformedInput if there is no such file or it is split into parts, Unavailable if the hub does not answer.
    """
    owner, _, rest = name.partition("/")
    repository, _, path = rest.partition("/")
    repository, _, quantisation = repository.partition(":")
    if not owner or not repository:
        raise MalformedInput(f"{name} is not a model: write OWNER/REPOSITORY[:QUANTISATION] or the path of a file.")
    repository = f"{owner}/{repository}"
    try:
        async with session.get(
            f"{hub}/api/models/{repository}/tree/main", params={"recursive": "true"}, timeout=TIMEOUT
        ) as response:
            if response.status in {401, 403, 404}:
                raise MalformedInput(f"{hub} has no public model {repository}: check its name.")
            response.raise_for_status()
            entries = await response.json()
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise Unavailable(f"{hub} did not list the files of {repository}: {error or 'it does not answer'}.") from error
    files = {entry["path"]: _file(repository, entry) for entry in entries if entry.get("type") == "file"}
    return files[path] if path in files else _of_quantisation(files, repository, path, quantisation or QUANTISATION)


def _file(repository: str, entry: Mapping[str, Any]) -> ModelFile:
    return ModelFile(repository, entry["path"], int(entry.get("size", 0)), (entry.get("lfs") or {}).get("oid", ""))


def _of_quantisation(files: Mapping[str, ModelFile], repository: str, path: str, quantisation: str) -> ModelFile:
    wanted = path or quantisation
    models = [file for file in files.values() if file.path.endswith(".gguf")]
    matching = [file for file in models if quantisation.lower() in file.path.lower()] if not path else []
    whole = [file for file in matching if "-of-0" not in file.path]
    if matching and not whole:
        raise MalformedInput(f"{wanted} of {repository} comes in several parts: choose a model that is one file.")
    if not whole:
        offered = ", ".join(sorted(file.path for file in models)[:12]) or "no GGUF file"
        raise MalformedInput(f"{repository} has no {wanted}; it has {offered}.")
    return min(whole, key=lambda file: len(file.path))


async def fetch_model_file(
    session: aiohttp.ClientSession,
    file: ModelFile,
    folder: Path,
    hub: str,
    on_progress: OnProgress = lambda _, __: None,
) -> Path:
    """Return the path of the file in `folder`, after downloading what is missing. A partial download is resumed.

    Raises MalformedInput if the file differs from the hub's information, and Unavailable if the hub does not answer or
    the download is interrupted; the received part is kept for the next attempt.
    """
    target = folder / Path(file.path).name
    if _bytes(target) == file.size:
        return target
    part = target.with_suffix(".part")
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    url = f"{hub}/{file.repository}/resolve/main/{file.path}"
    try:
        await _resume(session, url, part, file.size, on_progress)
    except (aiohttp.ClientError, TimeoutError) as error:
        raise Unavailable(
            f"The download of {url} stopped: {error or 'no answer'}. Run the command again to continue."
        ) from error
    await asyncio.to_thread(_check, part, file)
    part.replace(target)
    return target


async def _resume(session: aiohttp.ClientSession, url: str, part: Path, size: int, on_progress: OnProgress) -> None:
    done = _bytes(part)
    if done >= size:
        return
    headers = {"Range": f"bytes={done}-"} if done else {}
    async with session.get(url, headers=headers, timeout=TIMEOUT) as response:
        response.raise_for_status()
        if response.status != 206:  # the whole file, although a part was requested
            done = 0
        with part.open("ab" if done else "wb") as out:
            on_progress(done, size)
            async for chunk in response.content.iter_chunked(CHUNK):
                await asyncio.to_thread(out.write, chunk)
                done += len(chunk)
                on_progress(done, size)
                if done > size:
                    return


def _bytes(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _check(part: Path, file: ModelFile) -> None:
    if _bytes(part) != file.size:
        fault = f"has {_bytes(part)} bytes and not {file.size}"
    elif file.sha256 and _sha256(part) != file.sha256:
        fault = "does not have its checksum"
    else:
        return
    part.unlink()
    raise MalformedInput(f"{file.path} from {file.repository} {fault}: it was deleted, run the command again.")


def _sha256(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
