"""Global measure of a topic model, and its documents, as random variables of PyMC."""

from collections.abc import Sequence
from typing import Any, override

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.distribution import _support_point
from pymc.logprob.abstract import MeasurableOp, _logprob
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.random.op import RNGConsumerOp
from pytensor.tensor.random.utils import custom_rng_deepcopy
from pytensor.tensor.type import TensorType

from pymc_dpsplit.moves.franchise import draw_franchise
from pymc_dpsplit.topics.word_law import draw_log_topics
from pymc_dpsplit.variables.measure import OwnedByStep
from pymc_dpsplit.variables.object_mode import ObjectModeOp
from pymc_dpsplit.variables.owned_terms import kept_term
from pymc_dpsplit.variables.rising import log_rising

# Roles of the outputs; output 0 of the node is the generator.
ROLES = ("n_topics", "n_tables", "new_weight", "weights", "log_words")


class TopicMeasure(OwnedByStep, ObjectModeOp, RNGConsumerOp, MeasurableOp):
    """Global weights of topics, with the weights of documents and the topics summed out.

    Inputs are a generator, alpha, gamma, eta, and the distinct lengths of documents with their
    numbers.  Outputs are the generator, the number of topics, the number of tables, the weight of
    the remainder, the weights (L,) in decreasing order, and, if `eta_varies`, the sum of the
    logarithms of the probabilities of all words in all topics.

    Parameters
    ----------
    target : str
        Name of the documents.
    n_words : int
        Number of words V.
    max_topics : int
        Number of weights L.
    eta_varies : bool
    """

    __props__ = ("target", "n_words", "max_topics", "eta_varies")
    _print_name = ("HDPMeasure", r"\operatorname{HDPMeasure}")
    name = "HDPMeasure"
    step_name, step_class = "topics", "HDPTopicsStep"

    def __init__(self, target: str, n_words: int, max_topics: int, eta_varies: bool) -> None:
        self.target = target
        self.n_words = n_words
        self.max_topics = max_topics
        self.eta_varies = eta_varies

    @property
    def roles(self) -> tuple[str, ...]:
        """Return the role of every output except the generator."""
        return ROLES if self.eta_varies else ROLES[:-1]

    @property
    def output_types(self) -> list[TensorType]:
        """Return the type of every output except the generator."""
        types = [TensorType("int64", ()), TensorType("int64", ()), TensorType("float64", ())]
        types.append(TensorType("float64", (self.max_topics,)))
        return types + [TensorType("float64", ())] * self.eta_varies

    @override
    def make_node(self, *inputs: Any) -> Apply:
        rng, alpha, gamma, eta, *lengths = inputs
        numbers = [pt.as_tensor(value).astype("float64") for value in (alpha, gamma, eta)]
        counts = [pt.as_tensor(value) for value in lengths]
        outputs = [rng.type(), *(of() for of in self.output_types)]
        return Apply(self, [rng, *numbers, *counts], outputs)

    @override
    def update(self, node: Apply) -> dict[Variable, Variable]:
        return {node.inputs[0]: node.outputs[0]}

    def dist_params(self, node: Apply) -> list[Variable]:
        """Return the inputs that PyMC prints."""
        return list(node.inputs[1:4])

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        return [None, *(tuple(map(pt.constant, of.shape)) for of in self.output_types)]

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        rng, alpha, gamma, eta, lengths, times = inputs
        rng = custom_rng_deepcopy(rng)
        every = np.repeat(lengths, times)
        tables, weights, log_rest = draw_franchise(every, float(alpha), float(gamma), rng)
        drawn = [rng, len(tables), tables.sum(), np.exp(log_rest), self.padded(weights)]
        if self.eta_varies:
            empty = np.zeros((self.n_words, len(tables)), np.int32)
            drawn.append(draw_log_topics(rng, empty, float(eta)).sum())
        for storage, value in zip(output_storage, drawn, strict=True):
            storage[0] = value if value is rng else np.asarray(value)

    def padded(self, weights: np.ndarray) -> np.ndarray:
        """Return the largest L weights in decreasing order, followed by zeros."""
        out = np.zeros(self.max_topics)
        largest = np.sort(weights)[::-1][: self.max_topics]
        out[: len(largest)] = largest
        return out

    @override
    def __str__(self) -> str:
        return f"{self.name}{{{self.target}}}"


@_logprob.register(TopicMeasure)
def _measure_logprob(
    op: TopicMeasure,
    values: Sequence[Any],
    rng: Variable,
    alpha: Any,
    gamma: Any,
    eta: Any,
    lengths: Any,
    times: Any,
    **kwargs: Any,
) -> list[Any]:
    """Return the log of eq. (15.3) as a function of the concentrations.

    Factors without them are omitted, because the step draws from the exact conditional laws.
    """
    if len(values) != len(op.output_types):
        raise NotImplementedError(
            f"The variables of the topic model {op.target!r} have a joint log-probability; give a "
            "value for each of them."
        )
    n_topics, n_tables, new_weight, weights, *log_words = values
    of_lengths = -pt.sum(times * log_rising(alpha, lengths))
    terms = [
        n_topics * pt.log(gamma),
        n_tables * pt.log(alpha) + of_lengths,
        (gamma - 1.0) * pt.log(new_weight),
        # The support alone; PyMC requires that every variable has a term.
        kept_term(pt.log(pt.all(weights >= 0.0).astype("float64")), values),
    ]
    for total in log_words:
        of_topic = pt.gammaln(op.n_words * eta) - op.n_words * pt.gammaln(eta)
        terms.append(n_topics * of_topic + (eta - 1.0) * total)
    return terms


@_support_point.register(TopicMeasure)
def _measure_support_point(op: TopicMeasure, rv: Variable, *inputs: Variable) -> Variable:
    """Return an initial point without topics, for which the step chooses a start."""
    role = op.roles[rv.owner.outputs.index(rv) - 1]
    of = op.output_types[op.roles.index(role)]
    return pt.constant(np.full(of.shape, role == "new_weight", of.dtype))


class TopicDocuments(ObjectModeOp, RNGConsumerOp, MeasurableOp):
    """Documents (J, V) of a topic model; inputs are a generator, J, and outputs of the measure.

    Parameters
    ----------
    target : str
        Name of the documents.
    n_words : int
        Number of words V.
    """

    __props__ = ("target", "n_words")
    _print_name = ("HDPTopics", r"\operatorname{HDPTopics}")
    name = "HDPTopics"
    default_output = 1
    has_density = False
    instead_of_density = "use dps.topic_perplexity"

    def __init__(self, target: str, n_words: int) -> None:
        self.target = target
        self.n_words = n_words

    @override
    def make_node(self, *inputs: Any) -> Apply:
        rng, n_documents, *measure = inputs
        out = TensorType("float64", (None, self.n_words))()
        return Apply(self, [rng, pt.as_tensor(n_documents), *measure], [rng.type(), out])

    @override
    def update(self, node: Apply) -> dict[Variable, Variable]:
        return {node.inputs[0]: node.outputs[0]}

    def dist_params(self, node: Apply) -> list[Variable]:
        """Return the inputs that PyMC prints."""
        return list(node.inputs[2:])

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        return [None, (node.inputs[1], pt.constant(self.n_words))]

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        raise NotImplementedError(
            f"Documents of {self.target} cannot be drawn, as the point of the model does not hold "
            "its topics; pass var_names= without it."
        )

    @override
    def __str__(self) -> str:
        return f"{self.name}{{{self.target}}}"


@_logprob.register(TopicDocuments)
def _documents_logprob(
    op: TopicDocuments,
    values: Sequence[Any],
    rng: Variable,
    n_documents: Any,
    *measure: Any,
    **kwargs: Any,
) -> Any:
    """Return zeros (J,): the probability of words given their topics depends on no variable."""
    return pt.zeros((n_documents,), dtype="float64")
