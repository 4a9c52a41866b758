"""Which cases run, and which are measured: of many that show much the same, some that are spread evenly over them."""

from collections import defaultdict

CASES = {
    "tests/decoders/test_coded.py::test_compile_export_and_vmap": 2,
    "tests/heads/test_export.py::test_export_save_load_with_a_dynamic_batch": 16,
    "tests/heads/test_export.py::test_structured_losses_are_made_inside_a_compiled_function": 8,
    "tests/heads/test_meta.py::test_named_codes_are_silent_contiguous_and_the_same_on_meta": 12,
    "tests/heads/test_wrapped_chains.py::test_two_processes_train_as_one": 1,
    "tests/losses/test_soft.py::TestDistributions::test_compile_and_export": 2,
    "tests/losses/test_structured_graph.py::test_losses_are_constructed_inside_a_compiled_function": 2,
    "tests/metrics/test_labels.py::test_two_processes_with_uneven_shards": 0,  # test_processes.py has every metric
    "tests/metrics/test_margins.py::test_two_processes_with_uneven_shards": 0,
    "tests/metrics/test_sequence.py::test_two_processes_with_uneven_shards": 0,
    "tests/metrics/test_spans.py::test_two_processes_with_uneven_shards": 0,
    "tests/ops/chain/test_engine.py::test_export_with_dynamic_batch_and_steps": 2,
    "tests/ops/chain/test_engine.py::test_first_and_second_derivatives": 4,
    "tests/ops/chain/test_partial.py::test_derivatives": 4,
    "tests/ops/online/test_loop.py::test_additive_learners": 8,
    "tests/recipes/test_boost.py::test_a_fit_that_was_killed_goes_on": 3,
    "tests/recipes/test_classify.py::test_published_configurations_run_and_need_no_command_line": 3,
    "tests/recipes/test_ignored.py::test_machines_and_ensembles": 1,
    "tests/recipes/test_ignored.py::test_the_columns_left_out_go_with_the_labels": 1,
    "tests/recipes/test_ocr.py::test_every_method_learns_to_read": 5,
    "tests/recipes/test_report.py::test_a_classifier": 1,
    "tests/recipes/test_report.py::test_a_machine": 1,
    "tests/recipes/test_report.py::test_an_ensemble": 2,
    "tests/recipes/test_report.py::test_other_data_are_numbered_and_scaled_as_the_model_was_taught": 1,
    "tests/recipes/test_report.py::test_the_probabilities_are_those_that_predict_writes": 2,
    "tests/recipes/test_report.py::test_words": 1,
    "tests/recipes/test_results_tag.py::test_every_configuration_is_accepted": 3,
    "tests/recipes/test_tag.py::test_a_file_that_a_kept_model_is_measured_by_is_looked_at": 1,
    "tests/recipes/test_tag.py::test_another_loss_is_one_word": 1,
    "tests/recipes/test_told.py::test_what_a_fit_said_is_not_said_again": 2,
    "tests/reports/test_result.py::test_every_picture_is_drawn": 8,
    "tests/scorers/test_many_classes.py::test_captured_and_half_precision": 2,
    "tests/scorers/test_many_classes.py::test_gradients_are_those_of_the_matrix": 6,
    "tests/scores/test_contract.py::TestChain::test_compile": 2,
    "tests/scores/test_contract.py::TestChain::test_export_saved_and_loaded": 2,
    "tests/scores/test_contract.py::TestChainWithAMatrixEachStep::test_compile": 2,
    "tests/scores/test_contract.py::TestChainWithAMatrixEachStep::test_export_saved_and_loaded": 2,
    "tests/scores/test_contract_structures.py::TestMultilabel::test_compile": 2,
    "tests/scores/test_contract_structures.py::TestMultilabel::test_export_saved_and_loaded": 2,
    "tests/scores/test_contract_structures.py::TestSecondOrder::test_compile": 2,
    "tests/scores/test_contract_structures.py::TestSecondOrder::test_export_saved_and_loaded": 2,
    "tests/scores/test_contract_structures.py::TestSegments::test_compile": 2,
    "tests/scores/test_contract_structures.py::TestSegments::test_export_saved_and_loaded": 2,
    "tests/scores/test_contract_structures.py::TestTree::test_compile": 2,
    "tests/scores/test_contract_structures.py::TestTree::test_export_saved_and_loaded": 2,
    "tests/scores/test_export.py::test_sequences": 4,
    "tests/solvers/boosting/test_rounds.py::test_ten_thousand_rounds_stay_finite": 4,
    "tests/solvers/svm/test_machine.py::TestGroupNorms::test_extreme_exponents_are_nearly_their_limits": 2,
    "tests/solvers/svm/test_machine.py::TestUse::test_a_row_of_weight_two_in_every_space": 4,
    "tests/solvers/svm/test_sparse.py::test_the_machine_of_the_dense_rows": 5,
    "tests/solvers/test_structured.py::TestKnownAnswers::test_words": 5,
    "tests/solvers/test_structured.py::TestObjective::test_the_primal_by_enumeration": 2,
    "tests/solvers/test_structured.py::TestStructures::test_any_scorer_that_is_linear_in_its_parameters": 2,
}
"""How many cases of a test run without --exhaustive, of tests that take seconds a case."""

MEASURED = 4
"""Of how many cases of one test coverage is measured, which makes a case take half as long again."""
WHOLE = tuple(
    f"tests/{part}"
    for part in (
        "bounds/",
        "codes/",
        "kernels/",
        "metrics/",
        "plots/",
        "reports/",
        "solvers/reduction/",
        "test_costs.py",
    )
)
"""Tests that are quick, of which every case is measured."""
OUTSIDE = ("tests/recipes/", "tests/benchmarks/", "tests/docs/")
"""Tests of what is no part of the package: what they reach of it, its own tests are to reach too."""


def beyond(items, most):
    """The cases that are left where of each test ``most(its name)`` stay; ``None`` keeps all."""
    cases = defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    left = []
    for name, same in cases.items():
        stay = most(name)
        if stay is not None and stay < len(same):
            kept = spread(len(same), stay)
            left += [item for number, item in enumerate(same) if number not in kept]
    return left


def spread(number, stay):
    """Positions from the first to the last: of a table of two by two, two on its diagonal."""
    last = number - 1
    return {last} if stay == 1 else {round(case * last / (stay - 1)) for case in range(stay)}


def unmeasured(items):
    """What coverage leaves out: a floor of what all of them reach."""
    return beyond(items, lambda name: 0 if name.startswith(OUTSIDE) else None if name.startswith(WHOLE) else MEASURED)
