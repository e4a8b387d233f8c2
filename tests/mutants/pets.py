"""Defects of private evolution: votes that weigh too much, noise that is missing, numbers that tell a private count."""

from tests.mutants.mutant import Mutant

FOLDER = "tests/unit/synthesizers/pets"
VOTING, METHOD, APART = (f"{FOLDER}/test_{name}.py" for name in ("voting", "method", "two_places"))
REWEIGHTING = f"{FOLDER}/test_reweighting.py"
COORDINATES = f"{METHOD}::test_one_more_unit_changes_no_other_units_coordinates"

MUTANTS = (
    Mutant(
        name="several neighbours at a whole vote each",
        why="q votes of one instead of 1/√q: epsilon 1 becomes 2.95 for seven neighbours",
        file="synthesizers/pets/selection.py",
        before="weights=number.astype(np.float64) ** 2))",
        after="weights=number.astype(np.float64) ** 2) / min(neighbours, len(group)))",
        tests=(VOTING,),
    ),
    Mutant(
        name="an event priced as one vote",
        why="an event changes the votes of several windows and is priced for one",
        file="synthesizers/pets/selection.py",
        before="Given(counted, float(influence))",
        after="Given(counted)",
        tests=(VOTING,),
    ),
    Mutant(
        name="features summed in the order of the rows",
        why="a unit more moves the others within a batch, where a library rounds their sums otherwise",
        file="synthesizers/pets/selection.py",
        before="        return _COSINE[both] / np.float32(math.sqrt(FEATURES / 2))",
        after="""\
        wave = self.frequency / self.lattice.step[:, None] * (2 * np.pi / 2**_TURN)
        turn = embeddings @ wave.astype(np.float32)
        return np.concatenate([np.cos(turn), np.sin(turn)], axis=1) / np.float32(math.sqrt(FEATURES / 2))""",
        tests=(f"{REWEIGHTING}::test_one_more_unit_changes_no_other_units_vector",),
    ),
    Mutant(
        name="classes mixed in the mean embedding",
        why="every class is drawn towards the first one's series",
        file="synthesizers/pets/selection.py",
        before="        return Rows(vectors, classes_of(panel), num_classes)",
        after="        return Rows(vectors, np.zeros(len(vectors), dtype=np.int64), num_classes)",
        tests=(f"{REWEIGHTING}::test_the_mean_draws_the_pool_towards_the_private_series_class_by_class",),
    ),
    Mutant(
        name="a pool as large as the private table",
        why="the number of members tells the number of private series",
        file="synthesizers/pets/method.py",
        before="_POOLED_PER_UNIT * private.population",
        after="_POOLED_PER_UNIT * private.num_units",
        tests=(f"{REWEIGHTING}::test_sizes_follow_from_the_declared_population_alone",),
    ),
    Mutant(
        name="one candidate for many private series",
        why="weights pile up on a few candidates, which samples then repeat",
        file="synthesizers/pets/selection.py",
        before="        if 1 / (weights**2).sum() >= least:",
        after="        if weights.sum() > 0:",
        tests=(f"{REWEIGHTING}::test_no_candidate_stands_for_many",),
    ),
    Mutant(
        name="candidates tied to the private count",
        why="the number of candidates tells the number of private series",
        file="synthesizers/pets/method.py",
        before="return self.settings.num_candidates(private.population, noise, classes)",
        after="return self.settings.num_candidates(private.panel.num_units, noise, classes)",
        tests=(f"{METHOD}::test_the_number_of_candidates_does_not_follow_the_private_number",),
    ),
    Mutant(
        name="lattice laid over private embeddings",
        why="one unit far out changes the coordinates, and so the votes, of all others",
        file="synthesizers/pets/selection.py",
        before="coordinates.append(lattice.coordinates(in_equal_batches(environment.embed, _BATCH, *shown)))",
        after="""\
embedded = in_equal_batches(environment.embed, _BATCH, *shown)
            coordinates.append(Lattice.around(embedded).coordinates(embedded))""",
        tests=(COORDINATES,),
    ),
    Mutant(
        name="private series standardised together",
        why="working scale depends on who else is in the table",
        file="statistics/encoding.py",
        before="        return filled(raw, panel.lengths[rows]).astype(np.float32)\n",
        after="""\
        whole = filled(raw, panel.lengths[rows])
        return ((whole - whole.mean()) / (whole.std() + 1e-9)).astype(np.float32)
""",
        tests=(
            "tests/unit/statistics/test_encoding.py",
            COORDINATES,
        ),
    ),
    Mutant(
        name="votes counted once more than charged",
        why="a histogram that nobody paid for guides the start",
        file="synthesizers/pets/method.py",
        before="        population = here.population\n",
        after="""\
        vote_of(here)(here.environment.embed(here.population.series, here.population.static), here.population.group)
        population = here.population
""",
        tests=(f"{METHOD}::test_private_series_are_counted_once_per_iteration",),
    ),
    Mutant(
        name="several series priced as one vote",
        why="the exact price of a single vote is claimed for a unit that moves many counts",
        file="synthesizers/pets/method.py",
        before='schema.unit.kind != "event" and schema.unit.max_series == 1 and self.settings.neighbours == 1',
        after="self.settings.neighbours == 1",
        tests=(f"{METHOD}::test_only_a_single_whole_vote_is_priced_as_one",),
    ),
    Mutant(
        name="facts left out of the price",
        why="votes spend the whole budget although facts were bought with it",
        file="synthesizers/pets/method.py",
        before="facts_events = [entry.event for entry in entries]",
        after="facts_events = []",
        tests=(f"{METHOD}::test_the_plan_costs_the_guarantee_and_never_more",),
    ),
    Mutant(
        name="the paper's recipe unnamed",
        why="a population as large as the private table, and a certificate that does not say so",
        file="synthesizers/pets/method.py",
        before="unprotected = (_PUBLISHED,) if self.settings.as_published else ()",
        after="unprotected = ()",
        tests=(f"{METHOD}::test_the_papers_recipe_needs_a_unit_that_protects_nobody_and_says_what_it_tells",),
    ),
    Mutant(
        name="votes beyond the charge for whoever asks",
        why="a proposal that comes twice is answered without having been paid for",
        file="synthesizers/pets/two_places.py",
        before='grant = ledger.resume(proposal.facts["run"], noise=noise)',
        after="""\
grant = ledger.resume(proposal.facts["run"], noise=noise)
    grant._executed[VOTES], grant._record = 0, lambda label, number: 0""",
        tests=(f"{APART}::test_a_vote_that_was_not_paid_for_is_refused",),
    ),
    Mutant(
        name="a unit in two files votes twice",
        why="files of one population are not checked for units they share",
        file="synthesizers/pets/two_places.py",
        before="if seen & identifiers:",
        after="if False:",
        tests=(f"{APART}::test_files_of_a_population_vote_one_after_another",),
    ),
    Mutant(
        name="a bound from the proposal",
        why="coordinates beyond the lattice make distances inexact, and one unit's votes depend on others",
        file="synthesizers/pets/selection.py",
        before="neginf=-limit).clip(-limit, limit).astype(np.int16)",
        after="neginf=-limit).clip(-3e4, 3e4).astype(np.int16)",
        tests=(VOTING,),
    ),
    Mutant(
        name="a lattice of another dimension",
        why="distances are not exact on it, and one voter more turns everybody's vote",
        file="synthesizers/pets/selection.py",
        before="        if not self.centre.shape == self.step.shape == embeddings.shape[1:]:",
        after="        if False:",
        tests=(APART,),
    ),
    Mutant(
        name="windows as a proposal likes them",
        why="one late row less takes away windows that its event never touched",
        file="synthesizers/pets/two_places.py",
        before="    method._check(schema, ledger)  # windows are",
        after="    # windows are",
        tests=(APART,),
    ),
    Mutant(
        name="units of two files told apart by type",
        why="a person in a table and in a file of arrays votes twice",
        file="synthesizers/pets/two_places.py",
        before="set(map(str, panel.unit_ids.tolist()))",
        after="set(panel.unit_ids.tolist())",
        tests=(
            "tests/unit/synthesizers/pets/test_two_places.py::test_a_unit_is_known_by_its_name_however_a_file_stores_it",
        ),
    ),
    Mutant(
        name="a file compared with the one before it only",
        why="a unit in the first and the third file votes twice",
        file="synthesizers/pets/two_places.py",
        before="        seen |= identifiers\n",
        after="        seen = identifiers\n",
        tests=("tests/unit/synthesizers/pets/test_two_places.py::test_files_of_a_population_vote_one_after_another",),
    ),
)
