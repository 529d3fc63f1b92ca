"""Limits on untrusted input: the size of a document, and the work that may be spent on it."""

from __future__ import annotations

MAX_BYTES = 8 * 1024 * 1024
"""Larger files are not read: the API server accepts objects of at most 3 MiB."""
MAX_OBJECT_LENGTH = 3 * 1024 * 1024
"""The characters that an object may have after mutations: the limit of the API server for a request."""
MAX_STDIN_BYTES = 64 * 1024 * 1024
"""More is not read from standard input: a KRM function may get many objects at once."""
MAX_WALKED_ENTRIES = 200_000
"""Files and folders that a search for manifests looks at: a home folder or `/` has more."""
MAX_WALKED_FILES = 50_000
"""Manifests that a folder outside of a jobs repository may hold."""
MAX_WALKED_BYTES = 1024**3
"""The size of these manifests together."""
MAX_DEPTH = 100
"""Deeper nesting is rejected: pods have fewer than twenty levels, and CRDs fewer than sixty."""
MAX_NODES = 200_000
"""The limit of nodes in a document after its aliases are expanded."""
MAX_COPIED_NODES = 100_000
"""The limit of nodes that the `copy` operations of JSON patches add to one object; each one may double it."""
MAX_SWEEP_BYTES = 32 * 1024 * 1024
"""The limit of text in all members of a sweep together."""
MAX_MATRIX_VALUES = 20_000
"""The limit of values in a matrix; a sweep has at most 10,000 members."""
MAX_MATRIX_BLOCKS = 1_000
"""The limit of `include` and `exclude` entries in a matrix."""
MAX_PATH_LENGTH = 4096
"""The limit of characters in a path or a JSON pointer."""
MAX_CEL_COST = 10_000_000
"""The budget of the API server for the expressions of a policy, and for the rules of a CRD, on one object."""
MAX_CALL_COST = 1_000_000
"""The budget of the API server for one expression."""
MAX_OBJECT_STEPS = 2_000_000
"""The steps that all policies, or all rules of a CRD, may take together on one object: a few seconds."""
FREE_STEPS = 50_000
"""The steps on one object that do not count for a run: a few times what all shipped packs take."""
MAX_DEFECTS, MAX_DEFECT_ITEMS = 500, 500
"""The defects of a repository, and the parts of one object for which the condition of a defect is evaluated."""
MAX_PARAMS = 200
"""The params for which a binding evaluates its policy on one object."""
MAX_VARIABLE_SIZE = 200_000
"""The characters that the value of a policy's variable may have as text, beyond those of the object and the params."""
MAX_LIMITING_OBJECTS = 100
"""The limit ranges, and the quotas, that are applied to the objects of a namespace."""
MAX_LIMITING_AMOUNTS = 200
"""The amounts that the limit ranges of a namespace may have together; each is compared with every container."""
MAX_QUOTA_AMOUNTS = 1000
"""The amounts that the quotas of a namespace may have together."""
MAX_EXCESSES = 500
"""The findings about quotas of an environment; fewer objects make the next ones visible."""
MAX_HOVER_LINES, MAX_HOVER_LENGTH = 10_000, 400_000
"""The lines and characters of a file whose values an editor describes, so that it answers within a second."""
MAX_SUPPRESSIONS = 500
"""The limit of suppression comments in a file; further ones have no effect."""
MAX_COMPARED = 256
"""Longer names get no suggestion: comparing them takes time that grows with the square of their length."""
MAX_SUGGESTIONS = 2_000
"""The number of known names that a misspelled name is compared with."""
MAX_FINDINGS = 100
"""After this many findings about one file, the rest of it is not checked."""
TOO_MANY_FINDINGS = f"there are more than {MAX_FINDINGS} faults; the rest is not checked"
MALFORMED_DATA_ERRORS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""The exceptions that code raises when it walks data of an unexpected shape."""


def allowed_alias_share(nodes: int) -> float:
    """The share of aliased nodes that Go's YAML decoder accepts: 99 % in small documents, 10 % in large ones."""
    low, high = 400_000, 4_000_000
    if nodes <= low:
        return 0.99
    if nodes >= high:
        return 0.10
    return 0.99 - 0.89 * (nodes - low) / (high - low)
