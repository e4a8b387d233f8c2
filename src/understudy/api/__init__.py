"""One function for each task: arguments are checked, tables read, the ledger charged, and only then is computed."""
