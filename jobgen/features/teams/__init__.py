"""The teams of a repository: who owns what, and what is used of each budget."""

from jobgen.model.features import Feature

FEATURE = Feature()
