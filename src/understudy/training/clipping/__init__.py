"""Per-unit gradient clipping: every unit's gradient over all parameters, clipped to one norm and added up."""
