"""Commands: results on stdout, progress and errors on stderr, nothing that depends on a private value on either."""
