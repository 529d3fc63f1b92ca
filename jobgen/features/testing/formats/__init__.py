"""The formats of `jobgen test`: one module each, whose `render` writes outcomes, errors and the part of a shard."""

from jobgen.reports.formats import Formats

FORMATS = Formats(__name__)
