"""Positions are converted between characters and the units of the client, also in very long lines."""

import pytest
from growth import takes_the_square_of_time
from lsprotocol import types
from pygls.workspace import PositionCodec

from jobgen.features.editor.server.positions import Units

LINES = ["plain\n", "\U0001f600a\U0001f600\U0001f600b\n", "é ü €\r\n", "", "\n", "last \U0001f600"]
ENCODINGS = ["utf-8", "utf-16", "utf-32"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_positions_are_converted_as_pygls_converts_them(encoding):
    ours, theirs = Units(encoding), PositionCodec(encoding)
    for number, line in enumerate(LINES):
        assert ours.client_num_units(line) == theirs.client_num_units(line)
        for column in range(len(line.rstrip("\r\n")) + 1):
            position = types.Position(number, column)
            units = ours.position_to_client_units(LINES, position)
            assert units == theirs.position_to_client_units(LINES, position)
            found = ours.position_from_client_units(LINES, units)
            assert (found.line, found.character) == (number, column)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_positions_beyond_the_text_are_at_its_end(encoding):
    units = Units(encoding)
    for number, line in enumerate(LINES):
        found = units.position_from_client_units(LINES, types.Position(number, 2**31 - 1))
        assert (found.line, found.character) == (number, len(line.rstrip("\r\n")))
    beyond = units.position_from_client_units(LINES, types.Position(2**31 - 1, 0))
    assert (beyond.line, beyond.character) == (5, 6)
    assert units.position_from_client_units([], types.Position(3, 3)).line == 0
    assert units.position_to_client_units(LINES, types.Position(99, 5)) == types.Position(6, 0)


@pytest.mark.parametrize("part", ["xx", "x\U0001f600"], ids=["ascii", "emoji"])
def test_many_positions_in_one_long_line_take_linear_time(part):
    def prepare(count):
        text = part * count

        def convert():
            units = Units("utf-16")
            for column in range(0, len(text), 500):
                found = units.position_to_client_units([text], types.Position(0, column))
                assert units.position_from_client_units([text], found).character == column

        return convert

    assert not takes_the_square_of_time(prepare, 125_000)
