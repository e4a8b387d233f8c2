"""Ledgers that a team shares, in one PostgreSQL database: one row of `ledgers` for each population, and its entries.

A writer holds an advisory lock on its population and works in one serialisable transaction. Triggers keep every table
append-only and give out numbers without gaps. A role that may only read can't charge; one that charges can't change,
delete, raise or adopt anything: that is for the owner of the tables. After a commit the server has the row on its
disk; a connection lost before the answer is an error, and no grant exists.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from understudy.errors import InputError, LedgerError
from understudy.extras import naming_extras
from understudy.privacy import store
from understudy.privacy.store import Queries, Session, Stored

if TYPE_CHECKING:
    import psycopg

SCHEMES = ("postgresql", "postgres")
_LOCK = "SELECT pg_advisory_lock(hashtextextended('understudy ' || %s, 0))"  # before the transaction takes its snapshot
_MIGRATIONS = (  # each is applied once, in this order; one that was published is never changed
    """
CREATE TABLE understudy.ledgers (population TEXT PRIMARY KEY, facts TEXT NOT NULL, written BIGINT NOT NULL DEFAULT 0);
CREATE TABLE understudy.entries (
  population TEXT NOT NULL REFERENCES understudy.ledgers, sequence BIGINT NOT NULL, kind TEXT NOT NULL,
  body TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (population, sequence));

CREATE FUNCTION understudy.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'append-only'; END $$;
CREATE FUNCTION understudy.only_count() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.population, NEW.facts, NEW.written) IS DISTINCT FROM (OLD.population, OLD.facts, OLD.written + 1) THEN
    RAISE EXCEPTION 'append-only';
  END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION understudy.next_entry() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog
AS $$
BEGIN
  IF NEW.kind NOT IN ('charge', 'executed', 'resumed') AND session_user <> current_user
     AND NOT pg_has_role(session_user, current_user, 'MEMBER') THEN
    RAISE EXCEPTION 'only the owner may add a row of this kind' USING ERRCODE = 'insufficient_privilege';
  END IF;
  UPDATE understudy.ledgers SET written = written + 1
    WHERE population = NEW.population AND written = NEW.sequence - 1;
  IF NOT FOUND THEN RAISE EXCEPTION 'append-only'; END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER ledgers_count BEFORE UPDATE ON understudy.ledgers FOR EACH ROW EXECUTE FUNCTION understudy.only_count();
CREATE TRIGGER ledgers_kept BEFORE DELETE OR TRUNCATE ON understudy.ledgers EXECUTE FUNCTION understudy.refuse();
CREATE TRIGGER entries_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON understudy.entries
  EXECUTE FUNCTION understudy.refuse();
CREATE TRIGGER entries_next BEFORE INSERT ON understudy.entries FOR EACH ROW EXECUTE FUNCTION understudy.next_entry();
""",
)
_QUERIES = Queries(
    facts="SELECT facts FROM understudy.ledgers WHERE population = %s",
    rows="SELECT sequence, kind, body, hash FROM understudy.entries WHERE population = %s AND sequence > %s "
    "ORDER BY sequence",
    written="SELECT written FROM understudy.ledgers WHERE population = %s",
    insert="INSERT INTO understudy.entries VALUES (%s, %s, %s, %s, %s)",
    structure="SELECT tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid JOIN pg_namespace ON "
    "pg_namespace.oid = relnamespace WHERE nspname = 'understudy' AND NOT tgisinternal AND tgenabled = 'O'",
    expected=frozenset({"ledgers_count", "ledgers_kept", "entries_kept", "entries_next"}),
)
_RIGHTS = {
    "reader": "GRANT USAGE ON SCHEMA understudy TO {0}; GRANT SELECT ON ALL TABLES IN SCHEMA understudy TO {0}",
    "charger": "GRANT INSERT ON understudy.entries TO {0}",  # on top of a reader's
}


def is_url(place: object) -> bool:
    """Whether a ledger's place is a PostgreSQL database."""
    return isinstance(place, str) and urlsplit(place).scheme in SCHEMES


class Postgres:
    """The ledger of one population in a database; the URL names it as `?population=NAME`."""

    kind = "postgresql"

    def __init__(self, url: str, population: str | None = None) -> None:
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query))
        named = query.pop("population", None)
        self._url = urlunsplit(parts._replace(query=urlencode(query, quote_via=quote)))
        self._shown = _without_password(self._url)
        self.population = named or population or self._only_one()
        self.place = f"{self._shown}{'&' if '?' in self._shown else '?'}population={quote(self.population)}"

    def exists(self) -> bool:
        with _connected(self._url) as connection:
            return _version(connection) > 0 and bool(Session(connection, _QUERIES, (self.population,)).facts())

    def require_free(self) -> None:
        """Refuses a ledger that exists, and a role that does not own the tables, which it makes at first."""
        prepare(self._url)
        if self.exists():
            raise LedgerError(f"'{self.place}' exists already: open it instead of creating it.")
        with _connected(self._url) as connection:
            connection.execute("BEGIN; INSERT INTO understudy.ledgers VALUES ('', ''); ROLLBACK")

    def create(self, facts: str, rows: Sequence[Stored] = ()) -> None:
        """A new ledger with these rows, in one transaction."""
        self.require_free()
        with self._transaction("SERIALIZABLE") as connection:
            session = Session(connection, _QUERIES, (self.population,))
            connection.execute("INSERT INTO understudy.ledgers VALUES (%s, %s)", (self.population, facts))
            for row in rows:
                session.insert(row)

    @contextmanager
    def session(self, *, write: bool) -> Iterator[Session]:
        """One transaction; a writer has waited for all others of the same population."""
        with self._transaction("SERIALIZABLE" if write else "REPEATABLE READ READ ONLY", lock=write) as connection:
            _require_version(connection, self._shown)
            yield Session(connection, _QUERIES, (self.population,))

    @contextmanager
    def _transaction(self, isolation: str, *, lock: bool = True) -> Iterator["psycopg.Connection[Any]"]:
        with _connected(self._url) as connection:
            if lock:
                connection.execute(_LOCK, (self.population,))
            connection.execute(f"BEGIN ISOLATION LEVEL {isolation}")
            yield connection  # closing the connection rolls back, and gives the lock up
            connection.execute("COMMIT")

    def _only_one(self) -> str:
        with _connected(self._url) as connection:
            _require_version(connection, self._shown)
            found = [name for (name,) in connection.execute("SELECT population FROM understudy.ledgers ORDER BY 1")]
        if len(found) != 1:
            known = ", ".join(f"'{name}'" for name in found) or "none"
            raise InputError(
                f"'{self._shown}': the ledger of one population is expected, and the database has {known}. Add "
                "?population=NAME to the URL."
            )
        return str(found[0])


def prepare(url: str, grants: Sequence[tuple[str, str]] = ()) -> int:
    """Makes or migrates the tables, as their owner, and lets roles read or charge. Returns the version of the tables.

    Args:
        grants: Pairs of "reader" or "charger" and a role that the database knows.
    """
    from psycopg import sql

    with _connected(url) as connection, connection.transaction():
        connection.execute(_LOCK.replace("advisory_lock", "advisory_xact_lock"), ("",))
        if _version(connection) < len(_MIGRATIONS):
            connection.execute("CREATE SCHEMA IF NOT EXISTS understudy")
            connection.execute("CREATE TABLE IF NOT EXISTS understudy.version (number INTEGER NOT NULL)")
        for number, migration in list(enumerate(_MIGRATIONS, 1))[_version(connection) :]:
            connection.execute(migration.encode())
            connection.execute("DELETE FROM understudy.version")
            connection.execute("INSERT INTO understudy.version VALUES (%s)", (number,))
        for right, role in grants:
            for needed in ("reader", "charger")[: 1 + (right == "charger")]:
                connection.execute(sql.SQL(_RIGHTS[needed]).format(sql.Identifier(role)))
        _require_version(connection, _without_password(url))
        return len(_MIGRATIONS)


def _version(connection: "psycopg.Connection[Any]") -> int:
    (table,) = connection.execute("SELECT to_regclass('understudy.version')").fetchone() or (None,)
    (number,) = (table and connection.execute("SELECT number FROM understudy.version").fetchone()) or (0,)
    return int(number)


def _require_version(connection: "psycopg.Connection[Any]", shown: str) -> None:
    found = _version(connection)
    if found != len(_MIGRATIONS):
        remedy = (
            f"Run `understudy ledger prepare {shown}` as the owner of the tables"
            if found < len(_MIGRATIONS)
            else "Use the version of Understudy that migrated it, or a newer one"
        )
        raise LedgerError(f"'{shown}' has ledgers of version {found}, expected {len(_MIGRATIONS)}. {remedy}.")


@contextmanager
def _connected(url: str) -> Iterator["psycopg.Connection[Any]"]:
    """A connection for one operation; whatever goes wrong becomes an error that names the place and a remedy."""
    with naming_extras("a ledger in PostgreSQL"):
        import psycopg
    shown = _without_password(url)
    try:
        with psycopg.connect(
            url, autocommit=True, connect_timeout=10, keepalives_idle=10, tcp_user_timeout=30_000
        ) as connection:
            _settle(connection, shown)
            yield connection
    except psycopg.errors.InsufficientPrivilege as problem:
        raise LedgerError(
            f"'{shown}': this role may not do that. Its owner can let it: `understudy ledger prepare {shown} --charger "
            "ROLE` or `--reader ROLE`; only the owner makes, raises and adopts ledgers."
        ) from problem
    except (psycopg.errors.SerializationFailure, psycopg.errors.LockNotAvailable) as problem:
        raise LedgerError(f"'{shown}' is in use by another process: wait until it has finished.") from problem
    except psycopg.errors.RaiseException as problem:
        raise store.damaged(shown) from problem
    except psycopg.Error as problem:
        raise LedgerError(
            f"'{shown}' did not answer ({type(problem).__name__}): the server is down, the connection was lost, or the "
            "password is not right. No run began. Check the server, PGPASSWORD or ~/.pgpass; `understudy ledger show` "
            "says whether the run was charged."
        ) from problem


def _settle(connection: "psycopg.Connection[Any]", shown: str) -> None:
    """Settings that a server may have otherwise; refuses one that loses what it has acknowledged."""
    wait = round(1000 * store.WAIT_SECONDS)  # a writer that hangs is cut off before those who wait give up
    connection.execute(f"SET lock_timeout = {wait}; SET idle_in_transaction_session_timeout = {wait // 2}")
    connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
    )
    if connection.execute("SELECT current_setting('fsync'), current_setting('full_page_writes')").fetchone() != (
        "on", "on",
    ):  # fmt: skip
        raise LedgerError(
            f"'{shown}': a server with fsync = on and full_page_writes = on is expected: this one forgets charges when "
            "its power fails. Set them in postgresql.conf."
        )


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    query = [(key, value) for key, value in parse_qsl(parts.query) if "password" not in key]
    user, _, host = parts.netloc.rpartition("@")
    who = f"{user.partition(':')[0]}@" if user else ""
    return urlunsplit(parts._replace(scheme="postgresql", netloc=who + host, query=urlencode(query, quote_via=quote)))
