"""Looks for keys, tokens and passwords in every file of the tree but `bench` (detect-secrets, all its detectors).

    python scripts/find_secrets.py [FOLDER]

Prints place and kind, never the secret itself. Exit 1 when something was found. There is no list of excused finds:
a line that only looks like a secret says so itself, in a comment `pragma: allowlist secret`.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from detect_secrets.core.secrets_collection import SecretsCollection
from detect_secrets.settings import default_settings

ROOT = Path(__file__).resolve().parent.parent
DEMO, RESULTS = "understudy-demo", "understudy-results"  # what make leaves: a key, hashes, signatures; git ignores it
# `make bench-test` scans bench, most of which is figures; caches end alike, see below
LEFT_OUT = {".cache", ".git", ".venv", "__pycache__", "bench", "build", "dist", "node_modules", DEMO, RESULTS}
BINARY = {".png", ".parquet", ".safetensors"}


def main(arguments: Sequence[str]) -> int:
    """Scans a folder and returns the exit code."""
    folder = Path(arguments[0]).resolve() if arguments else ROOT
    names = files_of(folder)
    found = SecretsCollection(root=str(folder))
    with default_settings():
        found.scan_files(*names, num_processors=2)
    places = sorted((name, secret.line_number, secret.type) for name, secret in found)
    for name, line, kind in places:
        print(f"{name}:{line}: looks like a secret ({kind}). Remove it and revoke it.")
    print(f"Secrets: {len(names)} files looked at, {len(places)} finds.")
    return 1 if places or not names else 0


def files_of(folder: Path) -> list[str]:
    """Every file that could be committed, relative to the folder."""
    names = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in LEFT_OUT and not name.endswith(("_cache", ".egg-info"))]
        folders[:] = [name for name in folders if name != ".hypothesis"]
        names += [os.path.relpath(Path(place) / name, folder) for name in files if Path(name).suffix not in BINARY]
    return sorted(names)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
