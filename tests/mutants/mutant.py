"""A defect to plant, and the tests that must notice it."""

from dataclasses import dataclass
from pathlib import Path

PACKAGE = "src/understudy"
BENCH = "bench/src/understudy_bench"


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One small patch that would break a guarantee without breaking the program.

    Attributes:
        name: Short and unique.
        why: What would be revealed, or promised in vain.
        file: Path below the package.
        before: Exact text of the source; occurs once.
        after: What a careless hand would have written.
        tests: Paths or node ids of tests; at least one of them has to fail.
        package: Where the package lies in a tree.
    """

    name: str
    why: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]
    package: str = PACKAGE

    def path(self, root: Path) -> Path:
        """The file to change in a tree."""
        return root / self.package / self.file

    def problem(self, root: Path) -> str | None:
        """Says why the patch does not fit the tree, None if it does."""
        path = self.path(root)
        if not path.is_file():
            return f"{self.file} does not exist"
        found = path.read_text(encoding="utf-8").count(self.before)
        if found != 1:
            return f"its text occurs {found} times in {self.file}"
        missing = [test for test in self.tests if not (root / test.split("::")[0]).is_file()]
        return f"{missing[0]} does not exist" if missing else None
