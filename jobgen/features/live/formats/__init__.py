"""The formats of `jobgen drift`: one module each, whose `render` writes what differs in each environment."""

from jobgen.reports.formats import Formats

FORMATS = Formats(__name__)
