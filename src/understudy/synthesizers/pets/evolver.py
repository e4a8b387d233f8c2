"""The other side of a run that is evolved elsewhere: knows ballots, never private data."""

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from understudy.data import Schema
from understudy.errors import InputError
from understudy.privacy.certificate import Certificate
from understudy.synthesizers.pets import drawing, world
from understudy.synthesizers.pets.evolution import Proposal, propose, select
from understudy.synthesizers.pets.method import Pets
from understudy.synthesizers.pets.papers import BOUGHT, LATTICE, Paper, options_of
from understudy.synthesizers.pets.population import Population
from understudy.synthesizers.release import PUBLIC_CONTEXT, Release
from understudy.synthesizers.spectral.sampling import num_labels

_KEPT = ("run", "schema", "noise", "pack", "options")
_RELATIVES = "relatives."


def begin(ballot: Paper, pack: str) -> Paper:
    """Returns the state of a new evolution from the first ballot: its first population and what is to be voted on."""
    method = replace(options_of(ballot), pack=pack)
    if world.load_pack(pack).sha256 != ballot.facts.get("pack"):
        raise InputError("The data holder votes with another module pack. Give both sides the same one.")
    schema, bought = Schema.loads(ballot.facts["schema"]), ballot.part(BOUGHT)
    rng = np.random.default_rng()
    size = method.recipe.num_candidates(ballot.facts["voters"], ballot.facts["noise"], num_labels(schema))
    here = world.prepare(method, schema, bought, size, rng)
    left = ballot.whole_number("left")
    arrays = {f"{BOUGHT}{name}": array for name, array in bought.items()}
    arrays |= {f"{LATTICE}{name}": getattr(here.lattice, name) for name in ("centre", "step")}
    arrays[PUBLIC_CONTEXT] = ballot.arrays[PUBLIC_CONTEXT]
    facts = {**{name: ballot.facts[name] for name in _KEPT}, "options": asdict(method), "left": left, "ancestors": []}
    return _with_proposal(facts, arrays, here.population, rng)


def advance(state: Paper, ballot: Paper) -> "Paper | Release":
    """Returns the next state after a vote, or the release after the last one."""
    if ballot.whole_number("run") != state.whole_number("run") or "histogram" not in ballot.arrays:
        raise InputError("The ballot belongs to another run, or holds no votes. Give the answer to the last proposal.")
    if ballot.whole_number("left") >= state.whole_number("left"):
        raise InputError("This ballot has been counted already. Give the answer to the last proposal.")
    method, rng = options_of(state), np.random.default_rng()
    histogram = ballot.arrays["histogram"]
    proposal = _proposal_of(state)
    if histogram.shape != (proposal.parents.size,):
        raise InputError("The ballot counts other candidates than were proposed. Give the answer to the last proposal.")
    schema = Schema.loads(state.facts["schema"])
    bought, modules = state.part(BOUGHT), world.modules_of(world.load_pack(method.pack), schema)
    environment = world.environment_of(method, world.encoding_of(schema, bought), modules, bought)
    population = select(proposal, environment, histogram, _stage(state)[1], rng)
    ancestors = [*state.facts["ancestors"], population.num_ancestors]
    facts = {**state.facts, "left": ballot.whole_number("left"), "ancestors": ancestors}
    if facts["left"] == 0:
        return _release(method, schema, state, population, ancestors, ballot.facts["certificate"])
    kept = {name: array for name, array in state.arrays.items() if not name.startswith((_RELATIVES, "parents."))}
    return _with_proposal(facts, kept, population, rng)


def proposal_paper(state: Paper) -> Paper:
    """Returns what the data holder gets to see: candidates as they are voted on, and how to look at them."""
    names = [name for name in state.arrays if name.startswith((BOUGHT, LATTICE)) and "spectral." not in name]
    arrays = {name: state.arrays[name] for name in names}
    arrays |= {"embeddings": state.arrays["embeddings"], "group": state.arrays["parents.group"]}
    facts = {name: state.facts[name] for name in ("run", "pack", "options", "left")}
    return Paper(kind="proposal", facts=facts, arrays=arrays)


def _with_proposal(
    facts: dict[str, Any], kept: dict[str, np.ndarray], population: Population, rng: np.random.Generator
) -> Paper:
    """Returns the state whose next vote is about `population`."""
    bare = Paper(kind="state", facts=facts, arrays=kept)
    method, schema = options_of(bare), Schema.loads(facts["schema"])
    bought, modules = bare.part(BOUGHT), world.modules_of(world.load_pack(method.pack), schema)
    environment = world.environment_of(method, world.encoding_of(schema, bought), modules, bought)
    made = propose(population, environment, _stage(bare)[0], rng)
    arrays = {**kept, "embeddings": made.embeddings.astype(np.float32)}
    arrays |= drawing.population_arrays("parents.", population)
    for place, relative in enumerate(made.relatives):
        arrays |= drawing.population_arrays(f"{_RELATIVES}{place}.", relative)
    return Paper(kind="state", facts=facts, arrays=arrays)


def _proposal_of(state: Paper) -> Proposal:
    method = options_of(state)
    relatives = (Population(**state.part(f"{_RELATIVES}{place}.")) for place in range(method.recipe.lookahead))
    return Proposal(
        parents=Population(**state.part("parents.")),
        degree=_stage(state)[0],
        relatives=tuple(relatives),
        embeddings=state.arrays["embeddings"],
    )


def _stage(state: Paper) -> tuple[float, float]:
    """Degree and threshold of the vote that comes next."""
    recipe = options_of(state).recipe
    return recipe.stages(float(state.facts["noise"]))[recipe.iterations - state.whole_number("left")]


def _release(
    method: Pets, schema: Schema, state: Paper, population: Population, ancestors: list[int], certificate: Any
) -> Release:
    if certificate is None:
        raise InputError("The last ballot carries no certificate. Ask the data holder for it.")
    arrays = drawing.to_arrays(method, population, state.part(BOUGHT), ancestors)
    arrays[PUBLIC_CONTEXT] = state.arrays[PUBLIC_CONTEXT]
    return Release(synthesizer=method, schema=schema, arrays=arrays, certificate=Certificate.from_json(certificate))
