"""Audits of whole fits, and the tables of VFLGAN-TS."""
