"""Kueue's own tables about worker clusters and devices agree with jobgen."""

from pathlib import Path

import pytest
import yaml
from kueue_tables import answer

CASES = [
    pytest.param(table, case["given"], case["expect"], id=f"{table}-{number}")
    for path in sorted((Path(__file__).parent / "kueue_tables/cases").glob("*.yaml"))
    for table, cases in yaml.safe_load(path.read_text("utf-8")).items()
    for number, case in enumerate(cases)
]


@pytest.mark.parametrize(("table", "given", "expected"), CASES)
def test_cases_of_kueue(table, given, expected):
    assert answer(table, given) == expected


def test_every_table_has_cases():
    assert len(CASES) > 70
