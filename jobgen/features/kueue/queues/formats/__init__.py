"""The formats of `jobgen queue`: one module each, whose `render` writes the reports of environments."""

from jobgen.reports.formats import Formats

FORMATS = Formats(__name__)
