"""How a CSV file is written: delimiter, decimal sign, encoding and words for missing values. Declared, not guessed."""

import codecs
from dataclasses import dataclass

from understudy.data.given import require_given
from understudy.errors import SchemaError

DECIMALS = (".", ",")


@dataclass(frozen=True, kw_only=True)
class CsvFormat:
    """The format of every CSV file that is read or written with a schema.

    Attributes:
        delimiter: Character between two columns.
        decimal: Decimal sign of numbers.
        encoding: Encoding of the file's text, by a name that Python knows.
        missing: Words that stand for a missing value, beside the usual ones (empty, NA, NaN, null).
    """

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.missing, list):
            object.__setattr__(self, "missing", tuple(self.missing))
        require_given(self, "csv")
        if not _is_delimiter(self.delimiter):
            raise _refused("delimiter", "one character such as ',', ';' or a tab is expected, no letter or digit")
        if self.decimal not in DECIMALS:
            raise _refused("decimal", "'.' or ',' is expected")
        if self.decimal == self.delimiter:
            raise _refused("decimal", "a sign other than the delimiter is expected; declare delimiter = ';' as well")
        if not _is_encoding(self.encoding):
            raise _refused("encoding", "an encoding such as 'utf-8', 'latin-1' or 'cp1252' is expected")


def _refused(field: str, expected: str) -> SchemaError:
    return SchemaError(f"Key 'csv.{field}': {expected}. Write what the file uses.", key=f"csv.{field}")


def _is_delimiter(text: str) -> bool:
    return len(text) == 1 and text.isascii() and not text.isalnum() and text not in "\r\n\"'.-+\0"


def _is_encoding(name: str) -> bool:
    try:
        return "\n".encode(name).decode(name) == "\n" and codecs.lookup(name) is not None
    except (LookupError, UnicodeError, TypeError, ValueError):
        return False


COMMAS = CsvFormat()
