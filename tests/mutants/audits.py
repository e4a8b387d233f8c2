"""Defects that only audits of whole fits and of transcripts notice, and defects of those audits."""

from tests.mutants.mutant import Mutant

MASKS = "tests/unit/synthesizers/vflgan_ts/test_masks.py"
STACK = "tests/unit/audit/shadow/test_stack.py"
COMPOSITION = "tests/statistical/test_canary_composition.py"
CLI = "tests/e2e/test_cli_audit.py"

MUTANTS = (
    Mutant(
        name="dropout masks from a public seed",
        why="one unit more changes the masks, and so the gradients, of everybody else",
        file="synthesizers/vflgan_ts/agreement.py",
        before='secrets.randbits(63) if self.mode == "sound" else torch.initial_seed()',
        after="torch.initial_seed()",
        tests=(f"{MASKS}::test_no_seed_tells_the_masks_of_a_run_that_protects_somebody",),
    ),
    Mutant(
        name="differences that are none",
        why="noise that all coordinates share hides every leak from the audit",
        file="audit/fits.py",
        before="DIFFERENCES: whole - common}",
        after="DIFFERENCES: whole}",
        tests=("bench/tests/test_audit_catch.py::test_one_scalar_of_noise_is_seen_in_differences",),
    ),
    Mutant(
        name="subsampling forgotten in the score",
        why="iterations in which the unit was not drawn drown those in which it was",
        file="audit/composition.py",
        before="np.log1p(-rate) if rate < 1 else -np.inf",
        after="-np.inf",
        tests=(f"{COMPOSITION}::test_the_score_is_the_likelihood_ratio_of_the_claimed_mixture",),
    ),
    Mutant(
        name="shadows that meet in their stack",
        why="what is measured on a shadow is not what a run of its own would have given",
        file="audit/shadow/stack.py",
        before="return self._objective.real(real).mean(1) + self._objective.fake(fake).mean(1)",
        after="return (self._objective.real(real).mean(1) + self._objective.fake(fake).mean(1)).square()",
        tests=(f"{STACK}::test_a_stacked_shadow_is_the_shadow_itself",),
    ),
    Mutant(
        name="an audit too short to say anything",
        why="hours of attacks that could not have found a leak are shown as if they had looked",
        file="audit/planning.py",
        before="    require_enough(per_arm, delta=certificate.delta)\n",
        after="",
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
