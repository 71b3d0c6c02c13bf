"""Commands that write are killed, interrupted, run out of disk, or meet another run at the same output.

``writers``   the table of what writes, one entry a command and format: one more is one more entry
``runs``      a command in a process of its own, forked when all is imported, so that it begins at once
``folders``   what is in a folder: outputs as wholes, records beside them, and what was left over
``acts``      what is done to a command, and what must hold afterwards
``__main__``  ``python -m torture``: the short run of the tests, and the long one, which is recorded
"""
