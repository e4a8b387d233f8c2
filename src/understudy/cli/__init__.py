"""The command line: one file per command, each a thin coat over the library.

Rules for every command: results on stdout, progress and errors on stderr, nothing that depends on a private
value or count on either. What an extra brings is imported where it is needed.
"""
