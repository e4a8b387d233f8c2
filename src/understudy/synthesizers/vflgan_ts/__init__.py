"""VFLGAN-TS: several organisations, one synthetic dataset."""
