"""Which tests only `make test-all` runs, by class; docs/testing.md says for each class what `make test` runs instead.

A test that takes minutes carries `pytest.mark.slow` itself. Here are tests of which others stand for the whole.
"""

import re
from dataclasses import dataclass

UNIT = "tests/unit/synthesizers"
OTHERS = "(pub2priv|ppem|vflgan-ts)"  # methods but one per mechanism; sums: spectral; votes: pets; gradients: dit
# Of the contract, what a run costs and all that reads one shared release; every method shows it in `make test`.
READ_ONLY = (
    "(?:fit_spends|bad_public|no_array|save_and_load|samples_|the_number_of_series|labels_can|the_release_holds)"
)


@dataclass(frozen=True)
class Part:
    """Tests of a file whose name begins with `test` and whose parameters begin with what `parameters` matches."""

    file: str
    test: str
    parameters: str = ""

    def holds(self, identifier: str) -> bool:
        """Whether a test, by its identifier, is one of them."""
        file, _, rest = identifier.partition("::")
        test, _, parameters = rest.partition("[")
        return file == self.file and test.startswith(self.test) and re.match(self.parameters, parameters) is not None


SLOW: dict[str, tuple[Part, ...]] = {
    "methods": (
        Part("tests/contract/test_methods.py", "test_the_method_keeps", f"{OTHERS}-(?!{READ_ONLY})"),
        Part(f"{UNIT}/ppem/test_hot_deck.py", "test_the_contract_is_kept_with_donors", f"(?!{READ_ONLY})"),
        Part(f"{UNIT}/test_clipping.py", "test_the_border_clips_hardly_anything_of_ordinary_units", OTHERS),
        Part(f"{UNIT}/test_travelling.py", "test_a_statistic_that_travelled_has_the_same_sum", f"{OTHERS}|dit, events"),
        Part(f"{UNIT}/test_clipping.py", "test_the_border_clips_hardly_anything_of_ordinary_units", "dit, events"),
        Part(f"{UNIT}/pub2priv/test_method.py", "test_every_variant_keeps_the_contract", "diffusion, (pack|none)"),
        Part(f"{UNIT}/dit/test_method.py", "test_one_unit_moves_each_statistic_by_at_most_its_bound", "1"),
        Part("tests/statistical/test_secret_coins.py", "test_training_has_coins", OTHERS),
        Part("tests/statistical/test_secret_coins.py", "test_which_windows_of_a_unit", OTHERS),
    ),
    "pages": (
        Part("tests/e2e/test_report_browser.py", "test_it_prints_in_light_colours"),
        Part("tests/site/test_pages_run.py", "test_console", r"docs/(evaluating|large-tables|pets-packs|pets)\.md"),
        Part("tests/site/test_pages_run.py", "test_python", r"docs/(dit|ppem|vflgan-ts)\.md"),
    ),
    "what is learned": (
        Part("tests/e2e/test_cli_pretrain_pub2priv.py", "test_a_pack_can_have_the_size_of_the_publication"),
        Part("tests/unit/api/test_scoring.py", "test_releases_are_compared_by_name"),
        Part(f"{UNIT}/dit/test_method.py", "test_the_paper_runs_at_small_size"),
        Part(f"{UNIT}/pub2priv/test_method.py", "test_the_paper_runs_at_small_size"),
        Part(f"{UNIT}/dit/test_method.py", "test_intervals_cover_what_they_say"),
        Part(f"{UNIT}/pets/test_ts2vec.py", "test_training_lowers_the_loss_on_series_it_never_saw"),
        Part(f"{UNIT}/pets/test_general_pack.py", "test_the_general_encoder_beats"),
        Part(f"{UNIT}/pub2priv/test_general_pack.py", "test_the_general_pack_beats"),
        Part(f"{UNIT}/ppem/test_published.py", "test_a_training_learns_where_the_data_is"),
        Part(f"{UNIT}/spectral/test_method.py", "test_homes_come_back_right"),
        Part("tests/unit/evaluation/test_headline.py", "test_the_headline_names", "(collapsed|permuted|shifted)"),
        Part("tests/e2e/test_cli_audit.py", "test_shadows_of_a_private_release_contradict_nothing"),
    ),
    "real noise of whole runs": (
        Part(f"{UNIT}/spectral/test_recipe.py", "test_noise_of_real_runs_is_as_charged"),
        Part("tests/statistical/test_canary_fits.py", "test_half_of_the_noise_contradicts_the_certificate"),
        Part("tests/statistical/test_canary_composition.py", "test_what_is_charged_for_several_iterations"),
    ),
    "plans": (
        Part("tests/e2e/test_cli_doubts.py", "test_a_plan_does_not_doubt"),
        Part("tests/e2e/test_cli_doubts.py", "test_a_plan_doubts_what_a_stranger"),
        Part("tests/e2e/test_cli_doubts.py", "test_a_plan_doubts_a_network"),
        Part("tests/e2e/test_cli_plan_bounds.py", "test_a_plan_takes_seconds", "(dit|spectral-cell1)"),
        Part("tests/e2e/test_cli_plan.py", "test_a_plan_says_why_it_takes_a_method"),
        Part("tests/e2e/test_cli_plan.py", "test_a_plan_says_when_a_budget_buys_nothing"),
        Part("tests/e2e/test_cli_plan.py", "test_a_simulation_can_use_a_public_table"),
        Part("tests/e2e/test_cli_ppem.py", "test_a_plan_says_from_which_effect_a_check_passes"),
        Part("tests/e2e/test_cli_pub2priv.py", "test_a_plan_needs_no_context"),
        Part("tests/e2e/test_cli_plan.py", "test_minutes_and_memory_are_within_a_factor_of_two"),
        Part("tests/e2e/test_cli_vflgan_ts.py", "test_a_plan_shows_what_local_noise_costs"),
    ),
    "processes": (
        Part("tests/e2e/test_cli_federate.py", "test_four_commands_make_a_release"),  # `make docs` runs its notebook
        Part("tests/unit/federated/test_launch.py", "test_a_killed_party_stops_all"),
        Part(f"{UNIT}/spectral/test_partitions.py", "test_a_cluster_gives_the_same_release"),
        Part("tests/unit/auditing/test_shadow_models.py", "test_a_killed_audit_goes_on"),
        Part("tests/unit/auditing/test_cluster.py", "test_a_scheduler_that_is_not_there_is_named"),
        Part("tests/e2e/test_cli_demo.py", "test_a_former_demo_is_replaced"),
        Part("tests/unit/privacy/test_store_crashes.py", "test_a_row_that_was_acknowledged_stays", "(EROFS|torn)"),
    ),
    "fuzzing": (Part("tests/fuzz/test_fuzz_harness.py", "test_fuzzing_finds_and_keeps", "a refusal of a schema"),),
}


def is_slow(identifier: str) -> bool:
    """Whether only `make test-all` runs a test."""
    return any(part.holds(identifier) for parts in SLOW.values() for part in parts)
