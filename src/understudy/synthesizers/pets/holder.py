"""The data holder's side of a run that is evolved elsewhere: opens it, then answers one proposal after another."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace

from understudy.data import Panel, Schema
from understudy.errors import DataError, InputError
from understudy.privacy.budget import Guarantee, check_delta
from understudy.privacy.certificate import Certificate, issue
from understudy.privacy.events import DiscreteGaussian
from understudy.privacy.grant import Grant
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import NoiseSource
from understudy.privacy.plan import SpendingPlan
from understudy.privacy.private_series import PrivateSeries
from understudy.statistics.encoding import Encoding
from understudy.synthesizers.base import shared_context
from understudy.synthesizers.pets import world
from understudy.synthesizers.pets.ballot import LABEL, blank, private_vote, voters_of
from understudy.synthesizers.pets.evolution import Environment
from understudy.synthesizers.pets.method import Pets
from understudy.synthesizers.pets.papers import BOUGHT, LATTICE, Paper, options_of
from understudy.synthesizers.pets.voting import Lattice
from understudy.synthesizers.release import PUBLIC_CONTEXT


def open_run(
    method: Pets, panel: Panel, ledger: Ledger, guarantee: Guarantee, noise: NoiseSource, *, whole: bool = True
) -> Paper:
    """Charges the whole run, buys the facts, and returns the first ballot.

    Args:
        panel: The private series, or the first of several files of them if not `whole`.

    Privacy: the order is that of `Synthesizer.fit`: check, plan, charge, look. The ballot is public.
    """
    schema = panel.schema
    plan = _checked_plan(method, schema, ledger, guarantee)
    if not whole and any(entry.label != LABEL for entry in plan.entries):
        raise InputError(
            "Several files: the run buys facts beside the votes, which need the table in one piece. Use scale = "
            "'bounds' and a schema without labels, gaps and varying lengths, or give one file."
        )
    grant = ledger.charge(plan, label=method.name, noise=noise)
    private = method.private_series(panel, schema.population.size or 1)
    bought = world.purchases(method, private, grant, lambda stage, share: None)
    facts = {
        "run": grant.receipt.run,
        "options": asdict(method),
        "schema": private.schema.dumps(),
        "noise": _votes_event(grant).noise_multiplier * private.influence,
        "voters": private.population,
        "pack": world.load_pack(method.pack).sha256,
        "left": grant.remaining(LABEL),
    }
    arrays = {f"{BOUGHT}{name}": array for name, array in bought.items()}
    return Paper(kind="ballot", facts=facts, arrays={**arrays, PUBLIC_CONTEXT: shared_context(private)})


def answer(
    proposal: Paper,
    panels: Iterable[Panel],
    schema: Schema,
    ledger: Ledger,
    noise: NoiseSource,
    *,
    pack: str = world.GENERAL,
    overrides: Mapping[str, str] | None = None,
) -> Paper:
    """Counts one vote under the run's charge and returns its ballot; the last one carries the certificate.

    Args:
        panels: The private series, in one or several files of whole units.
        overrides: Rules a person lifted by name, for the certificate.

    Privacy: executes one histogram of those charged, or raises. The proposal comes from outside and decides only what
    is voted on; schema, unit, charge and noise are the holder's own.
    """
    grant = ledger.resume(proposal.whole_number("run"), noise=noise)
    event = _votes_event(grant)
    method = replace(options_of(proposal), pack=pack)
    method._check(schema, ledger)  # windows are the proposal's to choose, within what can be protected
    modules = world.load_pack(pack)
    if proposal.facts.get("pack") != modules.sha256:
        raise InputError("The proposal was made with another module pack. Give both sides the same one.")
    learned = method.learned_schema(schema)
    encoding = world.encoding_of(learned, proposal.part(BOUGHT))
    environment = world.environment_of(method, encoding, world.modules_of(modules, learned), {})
    lattice = Lattice(**proposal.part(LATTICE))
    parts = _parts(method, panels, schema.population.size or 1)
    fitting = (_fitting(private, encoding, environment, lattice) for private in parts)
    voters = voters_of(fitting, encoding, environment, lattice)
    neighbours = 1 if event.one_vote else method.recipe.neighbours
    vote = private_vote(voters, grant, lattice, neighbours, method.influence(schema))
    histogram = vote(proposal.arrays["embeddings"], proposal.arrays["group"])
    left = grant.remaining(LABEL)
    certificate = None if left else json.loads(_certificate(grant, schema, method, overrides or {}).dumps())
    facts = {"run": grant.receipt.run, "left": left, "certificate": certificate}
    return Paper(kind="ballot", facts=facts, arrays={"histogram": histogram})


def _parts(method: Pets, panels: Iterable[Panel], population: int) -> Iterator[PrivateSeries]:
    """Yields files of one population, read one after another; a unit may be in one of them only."""
    seen: set[str] = set()
    for panel in panels:
        identifiers = set() if panel.unit_ids is None else set(map(str, panel.unit_ids.tolist()))  # 7 is "7" elsewhere
        if seen & identifiers:
            raise DataError("Files: a unit is in two of them. Put all of a unit's rows into one file.", column=None)
        seen |= identifiers
        yield method.private_series(panel, population)


def _fitting(private: PrivateSeries, encoding: Encoding, environment: Environment, lattice: Lattice) -> PrivateSeries:
    """Returns the series; refuses a lattice that they do not fit, also where nobody is there."""
    lattice.coordinates(blank(private.panel, encoding, environment))
    return private


def _checked_plan(method: Pets, schema: Schema, ledger: Ledger, guarantee: Guarantee) -> SpendingPlan:
    """Returns the plan of a run; whatever can be refused without looking at data is refused."""
    schema.require_declared()
    method._check(schema, ledger)
    if schema.population.size is None:
        raise InputError("population: a declared size is expected. Buy it first with `understudy buy population`.")
    check_delta(guarantee.delta, schema.protected_units, reproduction=ledger.reproduction)
    return method.spending_plan(schema, guarantee)


def _votes_event(grant: Grant) -> DiscreteGaussian:
    event = grant.plan.event(LABEL)
    if not isinstance(event, DiscreteGaussian):
        raise InputError("This run of the ledger was not charged for votes. Open one with `understudy pets vote`.")
    return event


def _certificate(grant: Grant, schema: Schema, method: Pets, overrides: Mapping[str, str]) -> Certificate:
    inputs = {"pets pack": world.load_pack(method.pack).sha256}
    named = {**method.departures(), **overrides}
    trust = method.trust(schema, grant.plan)
    return issue(grant, schema, method=method.name, public_inputs=inputs, overrides=named, trust=trust)
