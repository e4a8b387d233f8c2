"""What users call from Python, and what the command line calls for them: one function for each task.

Everything here is exported by `understudy` itself. Arguments are checked first, then tables are read, then the ledger
is charged; only then is anything computed from private series.
"""
