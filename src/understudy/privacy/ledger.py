"""The budget of one protected population: charge first, then read data; refuse when it is spent.

A ledger outlives runs. Refitting next month on new data of the same people is a new charge to the same
ledger, because their old and new series are read by releases that can be held side by side.

The registry of this computer keeps the newest row of every ledger, so that a file replaced by an older copy of itself
is refused here. On another computer certificates tell: they carry the head of the ledger's hash chain, and
`Ledger.knows` says whether a ledger contains it.
"""

from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, final

from understudy.data.type_checks import require_argument
from understudy.errors import BudgetExceeded, LedgerError, UnsupportedEvent
from understudy.privacy import canonical, charges, registry
from understudy.privacy.budget import Guarantee
from understudy.privacy.charges import Composition, Entry, Facts, Options, Remaining
from understudy.privacy.grant import Grant, Receipt
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import SpendingPlan
from understudy.privacy.store import Store, Writer

if TYPE_CHECKING:
    from understudy.data import Schema


@final
class Ledger:
    """Append-only account of everything that was done to one population's data.

    **Privacy**: the file holds declared facts and plans only. No row count, no hash of the data, nothing
    that was computed from a private table; it may be shown to anybody.

    Example:
        >>> from understudy.privacy.events import Gaussian
        >>> from understudy.privacy.plan import PlanEntry
        >>> ledger = Ledger.in_memory(Guarantee(2.0, 1e-6), max_runs=2)
        >>> plan = SpendingPlan((PlanEntry("mean", Gaussian(6.0)),), Guarantee(1.0, 5e-7))
        >>> grant = ledger.charge(plan, label="first run", noise=NoiseSource.secure())
        >>> round(ledger.remaining().epsilon, 3)
        1.289
    """

    def __init__(self, store: Store) -> None:
        facts = canonical.typed(Facts, store.facts)
        self._store, self._facts = store, facts
        self.path = store.path  # None in memory
        self.name, self.unit_sentence = facts.name, facts.unit  # of the population, and who is protected, in words
        self.population, self.reproduction = facts.population, facts.reproduction  # declared number; paper, if any

    @classmethod
    def create(
        cls,
        path: Path | str,
        *,
        name: str,
        unit_sentence: str,
        guarantee: Guarantee,
        **options: Unpack[Options],
    ) -> "Ledger":
        """A new ledger file, registered as the only one for the population `name`; `charges.Options` has the rest."""
        target = Path(path).absolute()
        facts = Facts.new(name, unit_sentence, guarantee, **options)
        store = Store.create(target, asdict(facts))
        try:
            registry.claim(name, target, facts.identity)
        except LedgerError:  # the population has another ledger; nothing was charged to this file yet
            target.unlink()
            raise
        registry.remember(store, facts.identity)
        return cls(store)

    @classmethod
    def open(cls, path: Path | str) -> "Ledger":
        """An existing ledger, after checking every row against the hash chain."""
        require_argument(path, str | Path, "Ledger.open", "Name the ledger's file; Ledger.open_for takes a schema.")
        target = Path(path).absolute()
        if not target.is_file():
            raise LedgerError(
                f"There is no ledger at '{target}'. Pass the path of the ledger file, usually next to the schema."
            )
        ledger = cls.checked(Store(target))
        registry.check_newest(ledger._store, ledger._facts.identity)
        registry.claim(ledger.name, target, ledger._facts.identity)
        return ledger

    @classmethod
    def adopt(cls, path: Path | str, *, reason: str) -> "Ledger":
        """Goes on with an older copy of a ledger, on the record; what this computer saw spent stays spent.

        Privacy: runs charged before can't be resumed, because what they have executed is not known any more.
        """
        ledger = cls.checked(Store(Path(path).absolute()))
        registry.claim(ledger.name, Path(path).absolute(), ledger._facts.identity)
        registry.adopt(ledger._store, ledger._facts.identity, reason)
        return ledger

    @classmethod
    def checked(cls, store: Store) -> "Ledger":
        """A ledger of which everything has been read once, so that damage shows now and not after a charge."""
        try:
            ledger = cls(store)
            ledger.composition  # noqa: B018
            charges.check_rows(store.rows_cached())
        except (KeyError, TypeError, ValueError, UnsupportedEvent) as problem:
            raise LedgerError(
                f"The ledger '{store.path}' is damaged: its budget or its charges can't be read. Restore the last "
                "good copy."
            ) from problem
        return ledger

    @classmethod
    def open_for(cls, schema: "Schema | Path | str", directory: Path | str | None = None) -> "Ledger":
        """The ledger of a schema's population, created on first use.

        Args:
            directory: a folder that has or gets `<name>.ledger`, or a file whose name ends in `.ledger`.
        """
        from understudy.data import Schema as SchemaType

        if isinstance(schema, Path | str):
            directory = Path(schema).absolute().parent if directory is None else directory
            schema = SchemaType.load(Path(schema))
        require_argument(schema, SchemaType, "Ledger.open_for", "Give the schema, or the path of its file.")
        path = charges.ledger_file(directory, schema.name)
        if path.exists():
            cls.checked(Store(path)).check_belongs_to(schema)
            return cls.open(path)
        elsewhere = registry.lookup(schema.name)
        if elsewhere is not None and not elsewhere.exists():
            raise LedgerError(
                f"The ledger of population '{schema.name}' was '{elsewhere}' and is gone. Put it back, to this "
                "folder if you like: a new one would forget what has been spent."
            )
        try:
            return cls.create(path, **charges.declared(schema))
        except LedgerError:
            if not path.exists():
                raise
            return cls.open(path)  # another process was quicker

    @classmethod
    def in_memory(
        cls,
        guarantee: Guarantee,
        *,
        name: str = "in-memory",
        unit_sentence: str = "",
        **options: Unpack[Options],
    ) -> "Ledger":
        """A ledger that ends with the process, for tests and for data that are not private.

        Certificates say so. It refuses like any other, but nothing stops a second one.
        """
        return cls(Store.create(None, asdict(Facts.new(name, unit_sentence, guarantee, **options))))

    def charge(self, plan: SpendingPlan, *, label: str, noise: NoiseSource) -> Grant:
        """Checks the budget, writes the whole run down, and only then returns the right to execute it.

        **Privacy**: nothing is given back if the run fails later; its noisy results may have been seen.

        Raises:
            BudgetExceeded: the ledger can't pay; it is left as it was.
        """
        price = self._checked_price(plan, label)
        with self._writing() as writer:
            run = sum(row.kind == "charge" for row in writer.rows) + 1
            charges.check_room(self.composition, charges.paid_charges(writer.rows), plan, price, label)
            head = writer.append("charge", charges.charge_body(run, plan, price, label, noise))
        return self._grant(run, plan, noise, head, secure=noise.is_secure, executed={})

    def check(self, plan: SpendingPlan, *, label: str) -> None:
        """Refuses what `charge` would refuse now, and writes nothing: before a large table is read."""
        price = self._checked_price(plan, label)
        charges.check_room(self.composition, charges.paid_charges(self._store.rows()), plan, price, label)

    def resume(self, run: int, *, noise: NoiseSource) -> Grant:
        """A grant for what a charged run has not executed yet. Executions counted before stay counted."""
        entry = next((entry for entry in self.entries() if entry.run == run), None)
        if entry is None:
            raise LedgerError(f"This ledger has no run {run}. `understudy ledger show` lists its runs.")
        with self._writing() as writer:
            if any(row.kind == "adopted" for row in writer.rows[entry.sequence :]):
                raise LedgerError(
                    f"Run {run} was charged before an older copy of this ledger was adopted: what it has executed is "
                    "not known. Start a new run."
                )
            head = writer.append("resumed", {"run": run, "secure_noise": noise.is_secure})
        secure = entry.secure_noise and noise.is_secure
        return self._grant(run, entry.plan, noise, head, secure=secure, executed=entry.executed)

    def raise_budget(self, *, epsilon: float | None = None, max_runs: int | None = None, reason: str) -> None:
        """Raises what may ever be spent, on the record: every later certificate names it with its reason."""
        with self._writing() as writer:
            writer.append("raised", charges.raised_body(self._facts, self.composition, epsilon, max_runs, reason))

    def remaining(self) -> Remaining:
        """What the next run may ask for."""
        paid = charges.paid_charges(self._store.rows())
        left = charges.amount_left(self.composition, paid)
        runs = max(0, self.composition.max_runs - len(paid)) if self.composition.kind == "basic" else None
        spendable = 0.0 if runs == 0 else self.composition.epsilon_left(left)
        return Remaining(epsilon=spendable, delta=self.composition.run_delta, runs=runs)

    def entries(self) -> tuple[Entry, ...]:
        """All charges, oldest first, each with what has been executed of it."""
        rows = self._store.rows()
        return tuple(charges.entry_of(row, rows) for row in rows if row.kind == "charge")

    def head(self) -> str:
        """Hash over everything this ledger has recorded."""
        return self._store.head()

    def knows(self, head: str) -> bool:
        """Whether a certificate's ledger head belongs to this ledger; False after an old copy was restored."""
        return head == self._store.genesis or any(row.hash == head for row in self._store.rows())

    def amendments(self) -> tuple[str, ...]:
        """What was changed about this ledger after it was made, a sentence each."""
        return charges.sentences(self._store.rows())

    @property
    def guarantee(self) -> Guarantee:
        """The whole budget."""
        return self.composition.guarantee

    @property
    def composition(self) -> Composition:
        """The rule by which runs add up, with the budget as it was last raised."""
        return charges.composition_of(self._facts, self._store.rows_cached())

    def _checked_price(self, plan: SpendingPlan, label: str) -> float:
        return charges.check_price(self.composition, plan, label, self.population, self.reproduction)

    def _writing(self, *, thorough: bool = True) -> AbstractContextManager[Writer]:
        return registry.writing(self._store, self._facts.identity, thorough=thorough)

    def _grant(
        self,
        run: int,
        plan: SpendingPlan,
        noise: NoiseSource,
        head: str,
        *,
        secure: bool,
        executed: dict[str, int],
    ) -> Grant:
        receipt = Receipt(
            ledger=self.name,
            ledger_kind="in-memory" if self.path is None else "file",
            run=run,
            composition=self.composition.kind,
            population=self.population,
            reproduction=self.reproduction,
            secure_noise=secure,
            head=head,
            amendments=charges.sentences(self._store.rows_cached()),
        )
        record = partial(self._record_executed, run, plan)
        return Grant(plan=plan, noise=noise, receipt=receipt, record=record, executed=executed)

    def _record_executed(self, run: int, plan: SpendingPlan, label: str, number: int) -> int:
        """Writes executions down before they happen; counts what other grants of the same run have used."""
        with self._writing(thorough=False) as writer:
            total = charges.latest_total(writer.rows, run, label) + number
            if total > plan.executions(label):
                raise BudgetExceeded(
                    f"Run {run} has executed '{label}' as often as it was charged, by another grant.",
                    requested=total,
                    remaining=0,
                    label=label,
                )
            writer.append("executed", {"run": run, "label": label, "total": total})
        return total

    def check_belongs_to(self, schema: "Schema") -> None:
        """Refuses a schema of other people, of another unit or with another budget than this ledger was made for."""
        stated = charges.declared(schema)
        theirs = tuple(stated[key] for key in ("name", "unit_sentence", "guarantee", "max_runs", "composition"))
        if not self.is_declared_as(*theirs):
            current = self.composition
            raise LedgerError(
                f"'{self.path}' was made for the population '{self.name}' with epsilon = "
                f"{current.guarantee.epsilon:g}, delta = {current.guarantee.delta:g}, max_runs = {current.max_runs}, "
                f"composition = '{current.kind}' and the unit: {self.unit_sentence} The schema now says otherwise. Put "
                "the declaration back: what was promised about spent budget can't be changed by an edit. `understudy "
                "ledger raise` raises a budget on the record."
            )

    def is_declared_as(
        self, name: str, unit_sentence: str, guarantee: Guarantee, max_runs: int, composition: str = "basic"
    ) -> bool:
        """Says whether this is the ledger of these people, with the budget it was made with or was raised to."""
        theirs = (name, unit_sentence, guarantee, max_runs, composition)
        first, current = charges.composition_of(self._facts, ()), self.composition
        budgets = [(rule.guarantee, rule.max_runs, rule.kind) for rule in (first, current)]
        return theirs in [(self.name, self.unit_sentence, *budget) for budget in budgets]


def known(population: str) -> Ledger | None:
    """Returns a population's ledger; None where this computer does not have it."""
    path = registry.lookup(population)
    return None if path is None or not path.exists() else Ledger.open(path)


def record_uncovered(ledger: Ledger, what: str) -> None:
    """Writes into the population's ledger, as a charge of nothing, what no guarantee covers."""
    nothing = SpendingPlan((), Guarantee(ledger.guarantee.epsilon, ledger.composition.run_delta))
    ledger.charge(nothing, label=what, noise=NoiseSource.secure())
