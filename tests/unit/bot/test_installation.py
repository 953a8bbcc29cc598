"""Installed files of Plumbline that another distribution overwrote, or removed with its own, are told by a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.installation import DISTRIBUTION, installation_checked, overwritten

OWN = {"heart/__init__.py": "VERSION = '1'\n", "heart/lung.py": ""}


def install(site: Path, name: str, files: dict[str, str]) -> None:
    folder = site / f"{name.replace('-', '_')}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    (folder / "RECORD").write_text("".join(f"{each},,{len(text)}\n" for each, text in files.items()), encoding="utf-8")
    (folder / "top_level.txt").write_text("heart\n", encoding="utf-8")
    for each, text in files.items():
        (site / each).parent.mkdir(exist_ok=True)
        (site / each).write_text(text, encoding="utf-8")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    return tmp_path


def start() -> None:
    with installation_checked():
        raise ImportError("cannot import name 'VERSION' from 'heart'")


def test_an_installation_of_its_own_and_a_checkout_have_no_fault(site: Path) -> None:
    assert overwritten() == ""
    install(site, "other-heart", {"heart/__init__.py": ""})
    install(site, DISTRIBUTION, OWN)
    assert overwritten() == "", "what came before is the fault of the other"
    with pytest.raises(ImportError):
        start()


def test_a_file_that_another_distribution_overwrote_ends_the_start_with_its_name_and_a_remedy(site: Path) -> None:
    install(site, DISTRIBUTION, OWN)
    install(site, "other-heart", {"heart/__init__.py": "OWNER = 'other'\n"})
    with pytest.raises(SystemExit) as ended:
        start()
    for part in ("such as heart/__init__.py", "other-heart has packages", f"pipx install {DISTRIBUTION}"):
        assert part in str(ended.value)


def test_a_file_that_went_with_another_distribution_is_missed(site: Path) -> None:
    install(site, DISTRIBUTION, OWN)
    for each in OWN:
        (site / each).unlink()
    assert "such as heart/__init__.py" in overwritten()
    assert "They were changed or removed" in overwritten(), "by whom is not known"


def test_scripts_and_metadata_that_a_packager_rewrites_or_leaves_out_are_no_fault(site: Path) -> None:
    scripts = {"../bin/plumbline": "#!/build/bin/python\n", "plumbline_bot-1.0.dist-info/INSTALLER": "pip\n"}
    install(site, DISTRIBUTION, OWN | scripts)
    (site / "plumbline_bot-1.0.dist-info/INSTALLER").write_text("conda\n", encoding="utf-8")
    (site / "../bin/plumbline").unlink()
    assert overwritten() == ""
