"""jobgen as tools of an assistant, by the Model Context Protocol."""

from jobgen.model.features import Feature

FEATURE = Feature()
