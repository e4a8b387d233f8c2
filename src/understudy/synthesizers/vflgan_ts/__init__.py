"""VFLGAN-TS: several organisations, one synthetic dataset (paper 004)."""
