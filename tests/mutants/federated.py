"""Defects of runs between organisations: unpaid use, noise for a part only, counts given back, names not checked."""

from tests.mutants.mutant import Mutant

FOLDER = "tests/unit/federated"
RUNS, COSIGNING, ALIGNMENT = (f"{FOLDER}/test_{name}.py" for name in ("runs", "cosigning", "alignment"))
TRANSPORT = f"{FOLDER}/test_transport.py"
PARTITION = "tests/unit/synthesizers/vflgan_ts/test_partition.py"

MUTANTS = (
    Mutant(
        name="a part noised for itself",
        why="each party noises its columns as if there were no others, and together they have too little noise",
        file="synthesizers/vflgan_ts/partition.py",
        before="return {label: math.sqrt(whole / part) for label, (part, whole) in sizes.items() if part}",
        after="return {label: 1.0 for label, (part, whole) in sizes.items() if part}",
        tests=(f"{PARTITION}::test_every_part_is_noised_for_the_bound_of_the_whole",),
    ),
    Mutant(
        name="facts bought again after a crash",
        why="a party that lost what it bought buys it once more without a charge",
        file="federated/runs.py",
        before="                require_unused(grant, label, self.contract)\n",
        after="                pass\n",
        tests=(f"{RUNS}::test_what_was_bought_and_lost_is_not_bought_twice",),
    ),
    Mutant(
        name="local rows noised at every start",
        why="every resume is another noisy copy of the same rows",
        file="federated/runs.py",
        before="    if not file.exists():\n        content = make()",
        after="    if True:\n        content = make()",
        tests=(f"{RUNS}::test_local_rows_are_noised_once_and_kept",),
    ),
    Mutant(
        name="iterations counted after a checkpoint",
        why="a party killed within a block has not counted what it ran",
        file="federated/runs.py",
        before="self.grant.begin_block(TRAINING, min(",
        after="print(TRAINING, min(",
        tests=(f"{RUNS}::test_every_side_charges_the_whole_run_before_values_are_used",),
    ),
    Mutant(
        name="lost iterations given back",
        why="a run that was killed starts with all its iterations again",
        file="federated/runs.py",
        before="    if contract.sound:\n        left = grant.remaining(TRAINING)\n",
        after="",
        tests=(f"{RUNS}::test_iterations_lost_in_a_crash_are_not_given_back",),
    ),
    Mutant(
        name="randomness kept in a checkpoint of sound",
        why="whoever finds a checkpoint knows every later latent",
        file="federated/runs.py",
        before='            if not self.run.contract.sound:\n                rest["randomness"]',
        after='            if self.run.contract:\n                rest["randomness"]',
        tests=(f"{RUNS}::test_noise_differs_after_a_resume_and_its_state_is_nowhere",),
    ),
    Mutant(
        name="a resume charged as a new run",
        why="one run spends the budget twice, and its executions are counted from nothing",
        file="federated/config.py",
        before="        return ledger.resume(entry.run, noise=noise)\n",
        after="        return ledger.charge(contract.plan, label=contract.label, noise=noise)\n",
        tests=(f"{RUNS}::test_a_run_killed_at_any_exchange_resumes_to_the_same_release",),
    ),
    Mutant(
        name="another contract let through",
        why="parties that agreed on different noise train together",
        file="federated/runs.py",
        before='            if said["contract"] != contract.digest.encode():\n',
        after='            if not said["contract"]:\n',
        tests=(f"{RUNS}::test_a_party_that_means_another_run_is_refused_uncharged",),
    ),
    Mutant(
        name="all sides with one stream of test noise",
        why="noise of parties cancels or adds up, and whoever has one has all",
        file="federated/config.py",
        before='f"{self.noise_seed} {side}".encode()',
        after='f"{self.noise_seed}".encode()',
        tests=(f"{RUNS}::test_a_secure_source_is_used_unless_a_seed_was_agreed",),
    ),
    Mutant(
        name="every party keeps an order of its own",
        why="rows of different people are trained as one",
        file="federated/alignment.py",
        before="    ordered = sorted(common, key=lambda name: hmac.digest(",
        after="    ordered = sorted(common, key=place_of.get) or sorted(common, key=lambda name: hmac.digest(",
        tests=(f"{ALIGNMENT}::test_all_parties_find_the_common_ids_in_one_order",),
    ),
    Mutant(
        name="signed unread",
        why="a party vouches for an epsilon that its ledger never paid for",
        file="federated/cosigning.py",
        before="        for reason in (reason for reason, refused in wrong.items() if refused):\n",
        after="        for reason in ():\n",
        tests=(f"{COSIGNING}::test_a_party_signs_nothing_but_what_it_made_and_paid_for",),
    ),
    Mutant(
        name="a party's signature taken unchecked",
        why="a certificate says that organisations vouch for it which never saw it",
        file="privacy/certificate.py",
        before='    if not keys.is_signed_by(signer, str(entry.get("signature")), message):\n',
        after="    if not signer:\n",
        tests=(f"{COSIGNING}::test_an_aggregator_can_leave_nobody_out_and_change_nothing_alone",),
    ),
    Mutant(
        name="parties sign without each other",
        why="an aggregator leaves a party out and the others' signatures still hold",
        file="privacy/certificate.py",
        before='return _message("party", replace(certificate, parties=tuple(unsigned)))',
        after='return _message("party", replace(certificate, parties=()))',
        tests=(f"{COSIGNING}::test_an_aggregator_can_leave_nobody_out_and_change_nothing_alone",),
    ),
    Mutant(
        name="a stranger let in",
        why="whoever has any certificate of the authority takes a party's place",
        file="federated/transport.py",
        before="        if name not in self._answers or name in self._present:\n",
        after=(
            "        if name not in self._answers:\n            name = next(iter(self._answers))\n"
            "        if name in self._present:\n"
        ),
        tests=(f"{TRANSPORT}::test_a_certificate_without_a_place_in_the_run_is_refused_and_logged",),
    ),
    Mutant(
        name="a ledger without a name",
        why="one table gets a ledger for each contract, each with the whole budget",
        file="federated/config.py",
        before="    name: str = pydantic.Field(min_length=1)\n",
        after='    name: str = "people"\n',
        tests=(f"{FOLDER}/test_config.py",),
    ),
)
