"""The language server: what an editor shows about the files of a repository, while they are edited."""
