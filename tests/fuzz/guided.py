"""Fuzzes one reader with atheris, which keeps inputs that reach lines no other input has reached.

`python -m tests.fuzz.guided schema FOLDER -runs=10000`: seeds go to FOLDER, options to libFuzzer. Ends with exit code 0
if every input was read or refused as it should be; otherwise prints the error and the input.
"""

import re
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["understudy.data", "understudy.privacy", "understudy.synthesizers.release"]):
    from tests.fuzz.parsers import seeds, try_to_read


_STRANGE = ("1e999", "-0.0", "null", "true", "9223372036854775808", "[[[[[[[[", "ud800", "inf", "nan", "1979-05-27")


def main(name: str, folder: Path, *options: str) -> None:
    """Writes seeds and words, and starts the fuzzer, which ends the process."""
    corpus, words = folder / "corpus", folder / "words"
    corpus.mkdir()
    with tempfile.TemporaryDirectory() as scratch:
        found = seeds(name, Path(scratch))
    for number, seed in enumerate(found):
        (corpus / f"seed-{number}").write_bytes(seed)
    used = {word.decode() for seed in found for word in re.findall(rb"\w{1,20}", seed)}
    words.write_text("".join(f'"{word}"\n' for word in sorted({*used, *_STRANGE})))
    fixed = [str(corpus), f"-dict={words}", f"-artifact_prefix={folder}/", "-len_control=0", "-max_len=8000"]
    atheris.Setup([sys.argv[0], *fixed, *options], lambda data: try_to_read(name, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
