"""The budget of one protected population: charge first, then read data; refuse when it is spent.

The registry of this computer keeps the newest row of every ledger, so that a file replaced by an older copy of itself
is refused here. On another computer certificates tell: they carry the head of the ledger's hash chain. A ledger that
does not contain a release in a folder beside it is refused, and `Ledger.knows` says whether it contains any other.
"""

import html
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, final

from understudy import display
from understudy.data.type_checks import require_argument
from understudy.errors import BudgetExceeded, CertificateError, LedgerError, UnsupportedEvent
from understudy.privacy import canonical, charges, registry
from understudy.privacy.accounting import check_workload
from understudy.privacy.budget import Guarantee, at_least, at_most
from understudy.privacy.certificate import FILE_NAME as CERTIFICATE
from understudy.privacy.certificate import Certificate, parsed_events
from understudy.privacy.charges import Composition, Entry, Facts, Options, Remaining
from understudy.privacy.grant import Grant, Receipt
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import PlanEntry, SpendingPlan
from understudy.privacy.postgresql import Postgres, is_url
from understudy.privacy.sqlite import Sqlite
from understudy.privacy.store import Storage, Store, Writer, chained

if TYPE_CHECKING:
    from understudy.data import Schema

_LOG = logging.getLogger("understudy")  # of events that are public, for whoever listens
SCRATCH = "scratch"  # kind of a ledger that pays for nothing real
_ROWS_SHOWN = 10


@final
class Ledger:
    """Append-only account of everything that was done to one population's data.

    **Privacy**: the file holds declared facts and plans only, nothing computed from a private table.

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
        self.path, self.kind = store.place, store.kind  # a file, or a URL without a password; None in memory
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
        """A new ledger, registered as the only one for the population `name`; `charges.Options` has the rest.

        Args:
            path: a file, or the URL of a PostgreSQL database that a team shares (`postgresql://…`).
        """
        facts, storage = Facts.new(name, unit_sentence, guarantee, **options), _storage(path, name)
        with registry.claiming(name, storage.place, facts.identity):
            store = Store.create(storage, asdict(facts))
        registry.remember(store, facts.identity)
        return cls(store)

    @classmethod
    def open(cls, path: Path | str) -> "Ledger":
        """An existing ledger, a file or a URL, after checking every row against the hash chain."""
        require_argument(path, str | Path, "Ledger.open", "Name the ledger's file; Ledger.open_for takes a schema.")
        return cls._registered(cls.look(path))

    @classmethod
    def look(cls, path: Path | str) -> "Ledger":
        """An existing ledger, checked like any other, to be read only: this computer's registry is not asked."""
        return cls._read(_storage(path))

    @classmethod
    def adopt(cls, path: Path | str, *, reason: str) -> "Ledger":
        """Goes on with an older copy of a ledger, on the record; what is known to be spent stays spent.

        Privacy: runs charged before can't be resumed, because what they have executed is not known any more.
        """
        ledger = cls.look(path)
        before, place, identity = registry.lookup(ledger.name), ledger._store.place, ledger._facts.identity
        moved = before != place and isinstance(before, str) and isinstance(place, str)  # a server has another address
        registry.claim(ledger.name, place, identity, moved=moved)
        forgotten = {head: ledger._price_of(found) for head, found in ledger._forgotten().items()}
        registry.adopt(ledger._store, identity, reason, forgotten, moved=moved)
        return ledger

    @classmethod
    def move(cls, path: Path | str, to: Path | str) -> "Ledger":
        """Carries a ledger with its chain to another place, such as a database; the old one is closed for good.

        Privacy: the old place is closed first. A move that fails in between leaves nothing that can be charged; the
        same call completes it.
        """
        old = cls.look(path)
        old._require_newest()
        storage = _storage(to, old.name)
        storage.require_free()
        with old._store.writing() as writer:
            if not charges.is_closed(writer.rows):
                writer.append("moved", {"place": str(storage.place)})
        rows = old._store.rows_cached()
        arrived = chained(rows, "arrived", {"place": str(storage.place)})
        storage.create(canonical.dumps(old._store.facts), [row.stored for row in (*rows, arrived)])
        return cls._registered(cls._read(storage))

    @classmethod
    def _read(cls, storage: Storage) -> "Ledger":
        if not storage.exists():
            raise LedgerError(
                f"There is no ledger at '{storage.place}'. Pass the path of the ledger file, usually next to the "
                "schema, or the URL of the database."
            )
        return cls.of(Store(storage))

    @classmethod
    def of(cls, store: Store) -> "Ledger":
        """A ledger of which everything has been read once, so that damage shows now and not after a charge."""
        try:
            ledger = cls(store)
            ledger.composition  # noqa: B018
            charges.check_rows(store.rows_cached())
        except (KeyError, TypeError, ValueError, UnsupportedEvent) as problem:
            raise LedgerError(
                f"The ledger '{store.place}' is damaged: its budget or its charges can't be read. Restore the last "
                "good copy."
            ) from problem
        return ledger

    @classmethod
    def _registered(cls, ledger: "Ledger") -> "Ledger":
        rows = ledger._store.rows_cached()
        charges.require_open(rows, str(ledger.path))
        ledger._require_newest()
        arrived = any(row.kind == "arrived" for row in rows)
        registry.claim(ledger.name, ledger._store.place, ledger._facts.identity, moved=arrived)
        return ledger

    def _require_newest(self) -> None:
        """Refuses an older copy than this computer, or a release in a folder beside the ledger, has seen."""
        registry.check_newest(self._store, self._facts.identity)
        if self._forgotten():
            raise registry.older_copy(self._store, "a release in a folder beside it")

    def _forgotten(self) -> dict[str, Certificate]:
        """Releases in folders beside this ledger's file that it does not know, by the head that they state."""
        rows = self._store.rows_cached()
        known = {self._store.genesis, *(row.hash for row in rows), *charges.adopted_heads(rows)}
        beside = releases_beside(self.path, self.name) if isinstance(self.path, Path) else ()
        stated = ((str(found.ledger.get("head")), found) for found in beside)
        return {head: found for head, found in stated if head not in known}

    def _price_of(self, certificate: Certificate) -> float:
        """What the run of a release cost in this ledger's currency."""
        try:
            events = parsed_events(certificate)
            check_workload(events)
            planned = tuple(map(PlanEntry, certificate.labels, events))
            return self.composition.price(SpendingPlan(planned, Guarantee(certificate.epsilon, certificate.delta)))
        except (ValueError, UnsupportedEvent) as problem:
            raise LedgerError(
                f"A release beside '{self.path}' has a certificate that can't be accounted for. `understudy verify` "
                "says which: move that release away."
            ) from problem

    @classmethod
    def find(cls, population: str, place: Path | str | None = None) -> "Ledger | None":
        """A population's ledger, at a place or in a folder; None where there is none yet."""
        storage = _storage(_place_for(population, place), population)
        return cls._registered(cls._read(storage)) if storage.exists() else None

    @classmethod
    def find_for(cls, schema: "Schema", place: Path | str | None = None) -> "Ledger | None":
        """The ledger of a schema's population; None where the first run will make it."""
        storage = _storage(_place_for(schema.name, place), schema.name)
        if not storage.exists():
            return None
        ledger = cls._read(storage)
        ledger.check_belongs_to(schema)
        return cls._registered(ledger)

    @classmethod
    def open_for(cls, schema: "Schema | Path | str", directory: Path | str | None = None) -> "Ledger":
        """The ledger of a schema's population; created on first use.

        It is the shared one that this computer knows of the population, else the file `<name>.ledger` beside the
        schema, else one in the database that UNDERSTUDY_LEDGERS names.

        Args:
            directory: a folder that has or gets `<name>.ledger`, a file whose name ends in `.ledger`, or a URL.
        """
        from understudy.data import Schema as SchemaType

        if isinstance(schema, Path | str):
            directory = Path(schema).absolute().parent if directory is None else directory
            schema = SchemaType.load(Path(schema))
        require_argument(schema, SchemaType, "Ledger.open_for", "Give the schema, or the path of its file.")
        found = cls.find_for(schema, directory)
        if found is not None:
            return found
        elsewhere, declared = registry.lookup(schema.name), charges.declared(schema)
        if isinstance(elsewhere, Path) and not elsewhere.exists():
            raise LedgerError(
                f"The ledger of population '{schema.name}' was '{elsewhere}' and is gone. Put it back, to this "
                "folder if you like: a new one would forget what has been spent."
            )
        try:
            return cls.create(_place_for(schema.name, directory), **declared)
        except LedgerError:
            found = cls.find_for(schema, directory)
            if found is None:
                raise
            return found  # another process was quicker

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
        return cls(Store.create(Sqlite(None), asdict(Facts.new(name, unit_sentence, guarantee, **options))))

    @classmethod
    def scratch(cls, *, epsilon: float = 100.0, delta: float = 1e-5, max_runs: int = 100) -> "Ledger":
        """A ledger for exploring simulated or public data, which forgets everything when the process ends.

        Privacy: nothing stops a second one, so a release that it paid for is certified as *not private*.
        """
        ledger = cls.in_memory(Guarantee(epsilon, delta), name=SCRATCH, max_runs=max_runs)
        ledger.kind = SCRATCH
        return ledger

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
            body = charges.charge_body(run, plan, price, label, noise)
            head = writer.append("charge", body)
        if self.path is not None:
            told = {name: fact for name, fact in body.items() if name != "plan"}
            _LOG.info("charged", extra={"facts": {"population": self.name, **told}})
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

    def __repr__(self) -> str:
        left = self.remaining()
        return f"Ledger('{self.name}': epsilon {at_least(left.epsilon)} of {self.guarantee.epsilon:g} is left)"

    def _repr_html_(self) -> str:
        left, entries = self.remaining(), self.entries()
        head = f"Ledger of '{self.name}': {at_least(left.epsilon)} of epsilon = {self.guarantee.epsilon:g} is left"
        runs = "" if left.runs is None else f", in {left.runs} of {self.composition.max_runs} runs"
        rows = [(str(one.run), one.label, at_most(one.epsilon), at_most(one.delta), one.recorded_at) for one in entries]
        shown = display.html_table((">run", "method", ">epsilon", ">delta", "charged"), rows[-_ROWS_SHOWN:])
        return f"<p><strong>{html.escape(head + runs)}.</strong></p>{shown if rows else ''}"

    def _checked_price(self, plan: SpendingPlan, label: str) -> float:
        return charges.check_price(self.composition, plan, label, self.population, self.reproduction)

    @contextmanager
    def _writing(self, *, thorough: bool = True) -> Iterator[Writer]:
        with registry.writing(self._store, self._facts.identity, thorough=thorough) as writer:
            charges.require_open(writer.rows, str(self.path))
            yield writer

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
            ledger_kind=self.kind,
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


def releases_beside(file: Path, population: str) -> Iterator[Certificate]:
    """Yields the certificates in folders beside a ledger's file that were charged to a ledger of this population."""
    for path in sorted(file.parent.glob(f"*/{CERTIFICATE}")):
        with suppress(CertificateError):  # `verify` judges a certificate that can't be read
            found = Certificate.load(path)
            if found.ledger.get("name") == population and found.ledger.get("kind") in ("file", "postgresql"):
                yield found


def _storage(place: Path | str, population: str | None = None) -> Storage:
    if is_url(place):
        return Postgres(str(place), population)
    if "://" in str(place):
        raise LedgerError(f"'{place}': a ledger is a file or a database, postgresql://…. Pass one of these.")
    return Sqlite(Path(place).absolute())


def _place_for(population: str, place: Path | str | None) -> Path | str:
    """Where a population's ledger is or will be: the shared one that is known here, a file, the team's database."""
    if is_url(place):
        return str(place)
    known, file = registry.lookup(population), charges.ledger_file(place, population)
    team = os.environ.get("UNDERSTUDY_LEDGERS")
    if isinstance(known, str):
        return known
    return team if team and not file.exists() else file


def known(population: str) -> Ledger | None:
    """Returns a population's ledger; None where this computer does not have it."""
    place = registry.lookup(population)
    return Ledger.open(place) if place is not None and registry.is_there(place) else None


def record_uncovered(ledger: Ledger, what: str) -> None:
    """Writes into the population's ledger, as a charge of nothing, what no guarantee covers."""
    nothing = SpendingPlan((), Guarantee(ledger.guarantee.epsilon, ledger.composition.run_delta))
    ledger.charge(nothing, label=what, noise=NoiseSource.secure())
