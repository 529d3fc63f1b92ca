"""The hash of keys and digests: what `hashlib` and `hmac` have, without OpenSSL, which takes long to load."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import blake2b
    from hmac import compare_digest
else:
    try:
        # What `hashlib` imports, and what `hmac` imports without OpenSSL.
        from _blake2 import blake2b
        from _operator import _compare_digest as compare_digest
    except ImportError:
        from hashlib import blake2b
        from hmac import compare_digest

__all__ = ["blake2b", "compare_digest"]
