"""Defects in the account of what was spent."""

from tests.mutants.mutant import Mutant

LEDGER = "tests/unit/privacy/test_ledger.py"
GRANT = "tests/unit/privacy/test_grant.py"
EXTRA = "tests/unit/privacy/test_mutant_ledger.py"
ROLLBACK = "tests/unit/privacy/test_rollback.py"
AMENDED = "tests/unit/privacy/test_amendments.py"

MUTANTS = (
    Mutant(
        name="uncharged access",
        why="a grant is handed out and nothing is written down",
        file="privacy/ledger.py",
        before='head = writer.append("charge", charges.charge_body(run, plan, price, label, noise))',
        after="head = self._store.genesis",
        tests=(LEDGER,),
    ),
    Mutant(
        name="budget not checked",
        why="a spent ledger keeps paying",
        file="privacy/charges.py",
        before="if price > left + TOLERANCE * max(1.0, min(composition.limit, 1e6)):",
        after="if price > composition.limit + TOLERANCE * max(1.0, min(composition.limit, 1e6)):",
        tests=(LEDGER,),
    ),
    Mutant(
        name="more runs than delta was divided by",
        why="the deltas of all runs add up to more than was promised",
        file="privacy/charges.py",
        before='if composition.kind == "basic" and len(charges) >= composition.max_runs:',
        after='if composition.kind == "basic" and len(charges) > composition.max_runs:',
        tests=(LEDGER,),
    ),
    Mutant(
        name="the whole delta for every run",
        why="the deltas of all runs add up to more than was promised",
        file="privacy/charges.py",
        before='return self.guarantee.delta / self.max_runs if self.kind == "basic" else self.guarantee.delta',
        after="return self.guarantee.delta",
        tests=(LEDGER,),
    ),
    Mutant(
        name="loss distributions added up across runs",
        why="runs chosen after seeing earlier results are composed by a rule that does not hold for them",
        file="privacy/charges.py",
        before='    return composition.limit - sum(float(body["amount"]) for body in charges)',
        after="""\
    events = [event for body in charges for event in SpendingPlan.from_json(body["plan"]).events]
    from understudy.privacy import accounting

    return composition.limit - accounting.epsilon(events, composition.guarantee.delta)""",
        tests=(LEDGER,),
    ),
    Mutant(
        name="subsampling in a zCDP ledger",
        why="sampled noise is priced by a rule that does not hold for it",
        file="privacy/charges.py",
        before="        if rho is None:\n            raise InputError(",
        after="""\
        if rho is None:
            return plan.epsilon() ** 2 / 100
        if rho < 0:
            raise InputError(""",
        tests=(LEDGER,),
    ),
    Mutant(
        name="refund after a crash",
        why="a run that died is not counted, although its noisy results may have been seen",
        file="privacy/charges.py",
        before='if row.kind == "charge" and row.body["plan"]["entries"]]',
        after="""\
if row.kind == "charge" and row.body["plan"]["entries"]
            and all(latest_total(rows, row.body["run"], e["label"]) for e in row.body["plan"]["entries"])]""",
        tests=(LEDGER,),
    ),
    Mutant(
        name="resuming gives executions back",
        why="iterations that ran before a crash run again without a charge",
        file="privacy/ledger.py",
        before="secure=secure, executed=entry.executed)",
        after="secure=secure, executed={})",
        tests=(GRANT,),
    ),
    Mutant(
        name="two grants of a run count apart",
        why="a run resumed twice executes twice what was charged",
        file="privacy/ledger.py",
        before="if total > plan.executions(label):",
        after="if number > plan.executions(label):",
        tests=(GRANT,),
    ),
    Mutant(
        name="executions counted from the first note",
        why="the count of iterations is rewound to where the run began",
        file="privacy/charges.py",
        before="for row in reversed(rows):",
        after="for row in rows:",
        tests=(GRANT, EXTRA),
    ),
    Mutant(
        name="ledger rewound",
        why="whoever deletes the last rows gets their budget back",
        file="privacy/store.py",
        before="if found[: len(known)] != known or start + len(found) != (written[0] if written else 0):",
        after="if found[: len(known)] != known[: len(found)]:",
        tests=(LEDGER, EXTRA),
    ),
    Mutant(
        name="hash chain not checked",
        why="a charge can be edited down without anybody noticing",
        file="privacy/store.py",
        before="sequence != number or digest != chain_hash(previous, sequence, kind, text):",
        after="sequence != number:",
        tests=(LEDGER,),
    ),
    Mutant(
        name="charges that a power cut takes back",
        why="data is read under a charge that is not on the disk yet",
        file="privacy/store.py",
        before="PRAGMA synchronous=FULL",
        after="PRAGMA synchronous=OFF",
        tests=(EXTRA,),
    ),
    Mutant(
        name="checks and charges by two processes interleave",
        why="two runs at once spend the same budget",
        file="privacy/store.py",
        before='connection.execute("BEGIN IMMEDIATE")',
        after='connection.execute("BEGIN DEFERRED")',
        tests=(EXTRA,),
    ),
    Mutant(
        name="a second ledger for the same people",
        why="a copy of the ledger has the whole budget again",
        file="privacy/registry.py",
        before="            if found[1] != identity or is_copy:",
        after="            if found[1] != identity:",
        tests=(LEDGER,),
    ),
    Mutant(
        name="a budget raised afterwards",
        why="a ledger that is spent pays again after an edit of the schema",
        file="privacy/ledger.py",
        before="        return theirs in [(self.name, self.unit_sentence, *budget) for budget in budgets]",
        after="        return theirs[:2] == (self.name, self.unit_sentence)",
        tests=(LEDGER,),
    ),
    Mutant(
        name="seeded noise of a first part forgotten",
        why="a run that used predictable noise is called private once it was resumed",
        file="privacy/ledger.py",
        before="secure = entry.secure_noise and noise.is_secure",
        after="secure = noise.is_secure",
        tests=(GRANT,),
    ),
    Mutant(
        name="seeded noise of a middle part forgotten",
        why="a run that used predictable noise is called private once it was resumed again",
        file="privacy/charges.py",
        before='secure = body["secure_noise"] and all(resumed)',
        after='secure = body["secure_noise"]',
        tests=(GRANT,),
    ),
    Mutant(
        name="a plan dearer than its promise",
        why="the certificate states less than the events cost",
        file="privacy/charges.py",
        before="if plan.epsilon() > plan.guarantee.epsilon * (1 + 1e-6):",
        after="if plan.epsilon() > plan.guarantee.epsilon * 10:",
        tests=(LEDGER,),
    ),
    Mutant(
        name="an older copy of the ledger opened",
        why="restoring a backup of the ledger gives its budget back",
        file="privacy/registry.py",
        before="    _require_newest(store, store.rows(), last)",
        after="    _require_newest(store, store.rows(), [row for row in last if not row.sequence])",
        tests=(ROLLBACK,),
    ),
    Mutant(
        name="an older copy of the ledger charged",
        why="a ledger replaced while a program has it open pays twice from one budget",
        file="privacy/registry.py",
        before="            _require_newest(store, writer.rows, _heads(identity))",
        after="            _require_newest(store, writer.rows, ())",
        tests=(ROLLBACK,),
    ),
    Mutant(
        name="only the number of rows compared",
        why="a fork of the ledger with as many rows has forgotten other charges",
        file="privacy/registry.py",
        before="return row.sequence <= len(rows) and rows[row.sequence - 1].hash == row.head",
        after="return row.sequence <= len(rows)",
        tests=(ROLLBACK,),
    ),
    Mutant(
        name="budget given back by adopting an older copy",
        why="charges that the older copy has forgotten can be spent again",
        file="privacy/charges.py",
        before='if row.kind == "adopted":  # what an older copy has forgotten',
        after='if row.kind == "adopted" and not row.body["runs"]:',
        tests=(ROLLBACK,),
    ),
    Mutant(
        name="executions given back by adopting an older copy",
        why="iterations that the older copy has forgotten run again without a charge",
        file="privacy/ledger.py",
        before='if any(row.kind == "adopted" for row in writer.rows[entry.sequence :]):',
        after='if any(row.kind == "adopted" for row in writer.rows[: entry.sequence]):',
        tests=(ROLLBACK,),
    ),
    Mutant(
        name="a raised budget not named in certificates",
        why="a recipient takes the budget for the one that was declared first",
        file="privacy/certificate.py",
        before='amended = {"amendments": list(receipt.amendments)} if receipt.amendments else {}',
        after="amended: dict[str, Any] = {}",
        tests=(AMENDED,),
    ),
    Mutant(
        name="more runs without more delta",
        why="after a raise the shares of delta add up to more than the ledger states",
        file="privacy/charges.py",
        before='return facts.delta * max_runs / facts.max_runs if facts.composition == "basic" else facts.delta',
        after="return facts.delta",
        tests=(AMENDED,),
    ),
    Mutant(
        name="any signer passes where no key is trusted",
        why="the private table, signed with a new key, is called a release that holds",
        file="privacy/certificate.py",
        before='return Check("signer", False, f"unknown here:',
        after='return Check("signer", not trusted, f"unknown here:',
        tests=("tests/unit/privacy/test_certificate.py",),
    ),
    Mutant(
        name="a signer's name given to another key",
        why="a forger who signs with a new key takes the name of a trusted signer",
        file="privacy/keys.py",
        before="if known is not None and known.hexadecimal != hexadecimal:",
        after="if known is not None and known.name != name:",
        tests=("tests/unit/privacy/test_keys.py",),
    ),
    Mutant(
        name="a folder looked at after the charge",
        why="every rerun of a script spends budget and leaves no release",
        file="synthesizers/base.py",
        before="directory = None if save_to is None else unused_directory(save_to)",
        after="directory = save_to",
        tests=("tests/unit/synthesizers/test_release.py",),
    ),
    Mutant(
        name="epsilon on the page rounded to nearest",
        why="the regulator's page promises less loss than the certificate states",
        file="privacy/budget.py",
        before="lambda units: math.ceil(units - 1e-6)",
        after="round",
        tests=("tests/unit/privacy/test_budget.py", "tests/unit/privacy/test_certificate.py"),
    ),
)
