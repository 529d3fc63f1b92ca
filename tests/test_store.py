"""Which answers the store keeps: those that belong to what they read, and to nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobgen.engine.inputs import Unread, read_bytes, refuse_reuse
from jobgen.engine.store import Query, Store

LENGTH: Query[int] = Query("length")


class Question:
    """How long a file is; it counts how often it is answered."""

    def __init__(self, path: Path) -> None:
        self.path, self.store, self.computed = path, Store(), 0

    def ask(self) -> int:
        return self.store.ask(LENGTH, "key", self.compute)

    def compute(self) -> int:
        self.computed += 1
        return self.read()

    def read(self) -> int:
        found = read_bytes(str(self.path))
        assert not isinstance(found, Unread)
        return len(found)


@pytest.fixture
def question(tmp_path: Path) -> Question:
    (tmp_path / "file").write_text("abc")
    return Question(tmp_path / "file")


def test_an_answer_holds_while_what_it_read_is_the_same(question: Question) -> None:
    assert [question.ask(), question.ask()] == [3, 3]
    assert question.computed == 1

    question.path.write_text("abcd")
    assert [question.ask(), question.ask()] == [4, 4]
    assert question.computed == 2


def test_an_answer_that_depends_on_something_else_is_not_kept(question: Question) -> None:
    read = question.read

    def read_time() -> int:
        refuse_reuse()
        return read()

    question.read = read_time
    assert [question.ask(), question.ask()] == [3, 3]
    assert question.computed == 2


def test_an_answer_that_belongs_to_neither_content_is_not_kept(question: Question) -> None:
    read = question.read

    def read_twice() -> int:
        before = read()
        question.path.write_text("abcd")
        after = read()
        question.path.write_text("abc")
        return before + after

    question.read = read_twice
    assert [question.ask(), question.ask()] == [7, 7]
    assert question.computed == 2
