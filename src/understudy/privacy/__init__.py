"""Budget, events, ledger, accountants, noise, the one border, and certificates. Never imports torch."""
