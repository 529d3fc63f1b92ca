"""The formats of `jobgen teams`: one module each, whose `render` writes the overviews of teams."""

from jobgen.reports.formats import Formats

FORMATS = Formats(__name__)
