"""Defects that only audits of whole fits and of transcripts notice, and defects of those audits."""

from tests.mutants.mutant import BENCH, Mutant

RANDOMNESS = "tests/unit/synthesizers/vflgan_ts/test_randomness.py"
CLI = "tests/e2e/test_cli_audit.py"

MUTANTS = (
    Mutant(
        name="latents of a private run from a public seed",
        why="what a run drew is known beforehand to everybody who knows its options",
        file="synthesizers/vflgan_ts/protocol.py",
        before='secrets.randbits(63) if self.mode == "sound" else torch.initial_seed()',
        after="torch.initial_seed()",
        tests=(f"{RANDOMNESS}::test_no_seed_tells_the_randomness_of_a_run_that_protects_somebody",),
    ),
    Mutant(
        name="differences that are none",
        why="noise that all coordinates share hides every leak from the audit",
        file="audit/canaries.py",
        before="DIFFERENCES: whole - common}",
        after="DIFFERENCES: whole}",
        tests=("bench/tests/test_audit_catch.py::test_one_scalar_of_noise_is_seen_in_differences",),
        package=BENCH,
    ),
    Mutant(
        name="shadows that meet in their stack",
        why="what is measured on a shadow is not what a run of its own would have given",
        file="audit/stack.py",
        before="return softplus(-real).mean(1) + softplus(fake).mean(1)",
        after="return softplus(-real).mean(1) + softplus(fake - fake.mean(0)).mean(1)",
        tests=("bench/tests/test_audit_stack.py",),
        package=BENCH,
    ),
    Mutant(
        name="an audit too short to say anything",
        why="hours of attacks that could not have found a leak are shown as if they had looked",
        file="auditing/release.py",
        before="    if most == 0:\n",
        after="    if False:\n",
        tests=(f"{CLI}::test_what_no_audit_could_use_is_refused",),
    ),
    Mutant(
        name="findings of another release in a record",
        why="a page shows attacks on something else beside a certificate",
        file="report/record.py",
        before='if record.public["certificate"] != json.loads(certificate.dumps()):',
        after="if False:",
        tests=(f"{CLI}::test_a_record_of_another_release_is_refused",),
    ),
)
