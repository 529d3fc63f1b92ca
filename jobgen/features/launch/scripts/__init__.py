"""Programs that launchers start, and whose arguments have to fit the processes, one module each."""
