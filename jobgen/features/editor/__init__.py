"""The language server: what an editor shows about the files of a repository, while they are edited."""

from jobgen.model.features import Feature

FEATURE = Feature(needs=("kueue", "page"))
