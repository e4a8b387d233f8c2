"""Audits of whole fits, and the tables of VFLGAN-TS. Canaries are shared with the tests: run from a checkout."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))
