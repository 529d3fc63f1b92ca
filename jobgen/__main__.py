"""python -m jobgen."""

from jobgen.cli import main

main()
