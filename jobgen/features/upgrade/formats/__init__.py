"""The formats of `jobgen upgrade`: one module each, whose `render` writes a rehearsal."""

from jobgen.reports.formats import Formats

FORMATS = Formats(__name__)
