"""Shadow models: the same method fitted again and again, with and without one target (ASSD, paper 004, section 4.6)."""
