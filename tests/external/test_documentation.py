"""The commands of README.md as somebody new runs them, and the pages that follow from the code."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import aiohttp
import pytest

from tests.documentation import architecture
from tests.external.slack_emulator import eventually, free_port, process
from tests.external.teams_playground import STARTED_WITHIN, answers

pytestmark = pytest.mark.external

ROOT = Path(__file__).parents[2]
PLUMBLINE = Path(sys.executable).with_name("plumbline")
PAGE = "# Rolling back\n\nTo roll back, run `deploy rollback SERVICE`. It takes a minute.\n"


async def shell(command: str, folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a command as somebody would type it. Returns its exit code and what it printed."""
    started = await asyncio.create_subprocess_shell(
        command, cwd=folder, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    printed, _ = await started.communicate()
    return started.returncode or 0, printed.decode()


async def test_the_commands_of_the_readme_lead_from_nothing_to_an_answer(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".venv" / "bin").mkdir(parents=True)
    (home / ".venv" / "bin" / "plumbline").symlink_to(PLUMBLINE)
    text = (ROOT / "README.md").read_text(encoding="utf-8").split("## Run it")[1]
    (block,) = re.findall(r"```sh\n(.*?)```", text.split("\n## ")[0], re.DOTALL)
    port = str(free_port())
    path = f"{home / '.venv' / 'bin'}:/usr/bin:/bin"
    environment = {"HOME": str(home), "PATH": path, "PLUMBLINE_PORT": port, "COLUMNS": "200"}
    serve = ""
    for command in (line.split(" #")[0].strip() for line in block.splitlines()):
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            environment[name] = value
        elif command.endswith(" serve"):
            serve = command
        else:
            code, printed = await shell(f"{command} </dev/null", home, environment)
            assert code == 0, printed
            if command.endswith(" init"):
                assert "mkdir -p documents" in printed
                (home / "documents").mkdir()
                (home / "documents" / "rolling-back.md").write_text(PAGE, encoding="utf-8")
            if " ask " in command:
                assert "deploy rollback SERVICE" in printed
    code, printed = await shell(".venv/bin/plumbline doctor", home, environment)
    assert code == 0, printed
    serving = await asyncio.create_subprocess_exec(*serve.split(), cwd=home, env=environment)
    try:
        async with aiohttp.ClientSession() as session:
            address = f"http://127.0.0.1:{port}/readyz"
            await eventually(lambda: answers(session, address), "it is ready", STARTED_WITHIN)
        code, printed = await shell(".venv/bin/plumbline doctor", home, environment)
        assert "✓ database and index: open in the running bot" in printed
        assert code == 0, printed
    finally:
        serving.terminate()
        await serving.wait()


async def installed(folder: Path) -> Path:
    """Build the wheel from the sdist, install it with what it asks for into an empty environment, and return its command."""
    tools, source = {"PATH": "/usr/bin:/bin", "HOME": os.environ["HOME"]}, folder / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "tests", "docs", "build", "dist", "*.egg-info"))
    uv = f"{PLUMBLINE.with_name('uv')} --offline --quiet"
    for command in (
        f"{uv} build --no-build-isolation --python {sys.executable} --out-dir dist",
        f"{uv} venv --python {sys.executable} {folder / 'empty'}",
        f"VIRTUAL_ENV={folder / 'empty'} {uv} pip install --constraint requirements.lock dist/*.whl",
    ):
        code, printed = await shell(command, source, tools)
        assert code == 0, printed
    return folder / "empty" / "bin" / "plumbline"


async def test_the_demonstration_of_an_installed_wheel_answers_at_the_address_that_it_prints(tmp_path: Path) -> None:
    command = await installed(tmp_path)
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PLUMBLINE_PORT": str(free_port()), "COLUMNS": "200"}
    log = tmp_path / "demo.log"

    async def page() -> str | None:
        found = re.search(r"Open (http://\S+)", log.read_text(encoding="utf-8"))
        return found[1] if found else None

    async with aiohttp.ClientSession() as session, process([str(command), "demo"], log, environment):
        address = await eventually(page, "the address is printed", STARTED_WITHIN)
        assert await answers(session, address)


async def test_an_installed_wheel_says_what_overwrote_its_files_and_overwrites_those_of_others(tmp_path: Path) -> None:
    command = await installed(tmp_path)
    site = Path(command).parent.parent
    wheel = one_module_wheel(tmp_path)
    uv = f"VIRTUAL_ENV={site} {PLUMBLINE.with_name('uv')} --offline --quiet pip"
    environment = {"PATH": "/usr/bin:/bin", "HOME": os.environ["HOME"], "COLUMNS": "200"}
    for order, (change, expected) in {
        "before": (
            f"{uv} uninstall plumbline-bot && {uv} install {wheel} && {uv} install --no-deps source/dist/*.whl",
            0,
        ),
        "after": (f"{uv} install --reinstall {wheel}", 1),
        "and taken away": (f"{uv} uninstall another-core", 1),
    }.items():
        assert await shell(change, tmp_path, environment) == (0, ""), order
        code, printed = await shell(f"{command} --version", tmp_path, environment)
        assert code == expected, (order, printed)
        if expected:
            assert "core/__init__.py" in printed, order
            assert "Traceback" not in printed, order
            assert ("another-core has packages of the same name" in printed) is (order == "after")


def one_module_wheel(folder: Path) -> Path:
    """Return the wheel of a distribution that has a package `core` too."""
    wheel, about = folder / "another_core-1.0-py3-none-any.whl", "another_core-1.0.dist-info"
    files = {
        "core/__init__.py": "OWNER = 'another'\n",
        f"{about}/METADATA": "Metadata-Version: 2.4\nName: another-core\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{about}/RECORD", "".join(f"{name},,\n" for name in (*files, f"{about}/RECORD")))
    return wheel


def test_the_picture_of_the_architecture_is_that_of_the_code() -> None:
    drawn = architecture.draw(*architecture.imports())
    assert architecture.IMAGE.read_text(encoding="utf-8") == drawn, "run `make docs`"


async def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    command = f"{sys.executable} -m mkdocs build --quiet --strict --site-dir {tmp_path / 'site'}"
    code, printed = await shell(command, ROOT, {"PATH": "/usr/bin:/bin", "NO_MKDOCS_2_WARNING": "1"})
    assert code == 0, printed
    assert (tmp_path / "site" / "index.html").is_file()
