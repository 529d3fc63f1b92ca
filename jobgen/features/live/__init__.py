"""The live cluster, read with kubectl: its state as files of the repository, and what differs from what is rendered."""

from jobgen.model.features import Feature

FEATURE = Feature()
