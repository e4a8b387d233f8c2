"""Tables in, tables out: the user's files and frames ⇄ `Panel`."""
