"""Programs that start the processes of a job, one module each.

A module has the `NAMES` of its programs, which `signs.py` finds in commands, and `judge`, which returns what is wrong,
the world of the script, and the scripts that it starts.
"""
