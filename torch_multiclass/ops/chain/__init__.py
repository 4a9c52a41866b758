"""stand-in until the engine lands."""
from torch_multiclass.ops.chain.standin import log_partition, marginals, negative_log_likelihood, pair_marginals, viterbi
