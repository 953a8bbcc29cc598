"""Certificates with their private keys, as an app that signs in with one has them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.fakes.teams_connector import rsa_key


def certificate(file: Path, days: int = 90) -> x509.Certificate:
    """Write a PEM file with a private key and its certificate."""
    key, name = rsa_key(file.name), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "plumbline")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.not_valid_before(now - timedelta(days=30)).not_valid_after(now + timedelta(days=days))
    made = builder.serial_number(1).sign(key, SHA256())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(private + made.public_bytes(Encoding.PEM))
    return made
