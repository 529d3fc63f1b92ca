"""Tables: Flavor assignment."""

from __future__ import annotations

from typing import Final

from jobgen.kueue.tables import Table

TABLES: Final[dict[str, Table]] = {}
