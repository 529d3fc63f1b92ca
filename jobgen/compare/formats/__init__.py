"""The formats of a diff: one module each, whose `render` writes a change set."""

from jobgen.reports.formats import Formats

FORMATS = Formats(__name__)
