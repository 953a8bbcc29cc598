"""The list of contents (CycloneDX 1.6, JSON) of the wheel, or of an image.

python .ci/sbom.py >plumbline.cdx.json                            # what the runtime's lock names, with all hashes
python .ci/sbom.py FROZEN DEBIAN >plumbline-image.cdx.json         # of `pip freeze`, and of `dpkg-query -W`

The same files give the same list, byte for byte.
"""

from __future__ import annotations

import re
import sys
import uuid
from pathlib import Path
from typing import Any, cast

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
_PACKAGE = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[^\s;\\]+)", re.MULTILINE)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_VERSION = re.compile(r'^VERSION = "([^"]+)"', re.MULTILINE)


def contents(lock: Path, debian: Path | None = None) -> Bom:
    """Return what a lock or `pip freeze` names, and Debian's packages, as the parts of Plumbline."""
    text = lock.read_text(encoding="utf-8")
    version = _VERSION.search((ROOT / "core" / "__init__.py").read_text(encoding="utf-8"))
    assert version is not None
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_URL, text))
    whole = _component("plumbline-bot", version[1], (), ComponentType.APPLICATION)
    bom.metadata.component = whole
    starts = list(_PACKAGE.finditer(text))
    for each, following in zip(starts, [*starts[1:], None], strict=True):
        entry = text[each.end() : following.start() if following else len(text)]
        bom.components.add(_component(each["name"], each["version"], _HASH.findall(entry)))
    for line in debian.read_text(encoding="utf-8").splitlines() if debian is not None else ():
        name, _, number = line.partition("\t")
        url = PackageURL("deb", "debian", name, number)
        bom.components.add(Component(name=name, version=number, purl=url, bom_ref=str(url)))
    bom.register_dependency(whole, bom.components)
    cast("Any", bom.metadata).timestamp = None  # it would be another one each time
    return bom


def _component(
    name: str, version: str, hashes: list[str] | tuple[()], kind: ComponentType = ComponentType.LIBRARY
) -> Component:
    url = PackageURL("pypi", None, name, version)
    files = [
        ExternalReference(
            type=ExternalReferenceType.DISTRIBUTION,
            url=XsUri(str(url)),
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=each)],
        )
        for each in hashes
    ]
    return Component(name=name, version=version, type=kind, purl=url, bom_ref=str(url), external_references=files)


if __name__ == "__main__":
    listed = contents(*map(Path, sys.argv[1:3] or [str(LOCK)]))
    print(JsonV1Dot6(listed).output_as_string(indent=2))
