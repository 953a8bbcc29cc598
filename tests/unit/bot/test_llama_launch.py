from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.commands import llama_launch
from bot.commands.llama_launch import (
    ALL_LAYERS,
    GPU_SLOTS,
    LAYERS,
    SLOT_TOKENS,
    Hardware,
    Launch,
    gpu_layers,
    native_arguments,
    parallel_slots,
    python_arguments,
    server_command,
)
from core.model.errors import ConfigurationError

GIGABYTE = 1 << 30
EIGHT_BILLION = Launch(Path("/models/ferry-8b.gguf"), 5 * GIGABYTE, "127.0.0.1", 8081)


def option(arguments: list[str], name: str) -> str:
    return arguments[arguments.index(name) + 1]


def test_a_large_gpu_gets_the_whole_model_and_many_slots() -> None:
    arguments = native_arguments(EIGHT_BILLION, Hardware(cores=32, gpu_memory=80 * GIGABYTE))
    assert option(arguments, "--n-gpu-layers") == str(ALL_LAYERS)
    assert option(arguments, "--parallel") == str(GPU_SLOTS)
    assert option(arguments, "--ctx-size") == str(GPU_SLOTS * SLOT_TOKENS)
    assert option(arguments, "--threads") == "16"


def test_a_gpu_with_little_room_beside_the_model_gets_fewer_slots_and_still_all_of_it() -> None:
    found = Hardware(cores=8, gpu_memory=9 * GIGABYTE)
    assert parallel_slots(5 * GIGABYTE, found) == 2
    assert gpu_layers(5 * GIGABYTE, 2, found) == ALL_LAYERS


def test_what_does_not_fit_into_the_gpu_is_divided_by_the_native_server_and_by_us_for_the_other() -> None:
    found = Hardware(cores=8, gpu_memory=4 * GIGABYTE)
    assert "--n-gpu-layers" not in native_arguments(EIGHT_BILLION, found)
    assert 0 < int(option(python_arguments(EIGHT_BILLION, found), "--n_gpu_layers")) < LAYERS


def test_without_a_gpu_all_of_the_model_stays_in_memory() -> None:
    found = Hardware(cores=4, gpu_memory=0)
    arguments = native_arguments(EIGHT_BILLION, found)
    assert option(arguments, "--n-gpu-layers") == "0"
    assert option(arguments, "--parallel") == "2"
    assert option(python_arguments(EIGHT_BILLION, found), "--n_gpu_layers") == "0"


def test_the_python_server_is_told_not_to_drop_a_stream_for_the_next_request() -> None:
    arguments = python_arguments(EIGHT_BILLION, Hardware(cores=4, gpu_memory=0))
    assert option(arguments, "--interrupt_requests") == "false"


def test_the_native_server_is_taken_where_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "llama-server"
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert server_command(EIGHT_BILLION, Hardware(cores=4, gpu_memory=0))[0] == str(program)


def test_a_machine_without_any_server_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"plumbline\[llm\]"):
        server_command(EIGHT_BILLION, Hardware(cores=4, gpu_memory=0))


async def test_the_free_memory_of_all_gpus_is_added_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 1000\necho 2000\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (await llama_launch.hardware()).gpu_memory == 3000 << 20
    program.write_text("#!/bin/sh\necho no devices were found\nexit 9\n")
    assert (await llama_launch.hardware()).gpu_memory == 0


@given(model=st.integers(1, 200 * GIGABYTE), gpu=st.integers(0, 200 * GIGABYTE), cores=st.integers(1, 256))
def test_whatever_the_hardware_the_arguments_are_within_bounds(model: int, gpu: int, cores: int) -> None:
    found = Hardware(cores, gpu)
    slots = parallel_slots(model, found)
    assert 1 <= slots <= GPU_SLOTS
    layers = gpu_layers(model, slots, found)
    assert 0 <= layers <= LAYERS or layers == ALL_LAYERS
    assert layers == 0 or gpu
