"""`understudy app`: a web app on this machine that walks a person from a table to a release that others can check.

It holds no state of its own that matters: the schema, the ledger, the releases and the reports are the files that the
command line reads and writes, in the project folder that the person named.
"""
