"""BLAKE2 digests without OpenSSL, which `hashlib` and `hmac` load; that takes longer than all digests of a short run.

The names are what `hashlib.blake2b` and, without OpenSSL, `hmac.compare_digest` are.
"""

from __future__ import annotations

from _blake2 import blake2b
from _operator import _compare_digest as compare_digest

__all__ = ["blake2b", "compare_digest"]
