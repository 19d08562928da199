"""Step method for topics: transfers values between PyMC's point and the chain."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from pymc.model import Model
from pymc.pytensorf import compile as compile_function
from pymc.pytensorf import rvs_in_graph
from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator

from pymc_dpsplit.components.arguments import check_integer
from pymc_dpsplit.kernels.threads import new_pool
from pymc_dpsplit.moves.tables import MOST_GAMMA
from pymc_dpsplit.topic_model.lookup import find_topic_models
from pymc_dpsplit.topic_model.record import TOPIC_DRAW, TOPIC_PART, TopicRecord
from pymc_dpsplit.topics.concentrations import alpha_factor, eta_factor, gamma_factor, log_joint
from pymc_dpsplit.topics.corpus import corpus_of, document_lengths, expected_tables
from pymc_dpsplit.topics.cost import cost_of_sweep
from pymc_dpsplit.topics.documents import log_probability_of_topics
from pymc_dpsplit.topics.state import Strengths, TopicState, draw_n_topics, start_topics
from pymc_dpsplit.topics.sweep import redraw_weights, sweep_topics
from pymc_dpsplit.topics.word_law import draw_log_topics
from pymc_dpsplit.tuning.progress import TunedIterations, before_tuning, with_draw
from pymc_dpsplit.variables.data_read import DataRead
from pymc_dpsplit.variables.declared_models import owner_of
from pymc_dpsplit.variables.law import fault_of_concentration
from pymc_dpsplit.variables.lookup import is_owned, model_of_context
from pymc_dpsplit.variables.scalar_priors import move_scalars, moved_alone, priors_to_move
from pymc_dpsplit.variables.step_registration import knowing_steps as knowing_steps
from pymc_dpsplit.variables.step_registration import register_step, steps_last

_KIND = "topic model", "HDPTopics"
_STATS: dict[str, Any] = {
    "log_joint": np.float64,
    "entropy": np.float64,
    "largest_share": np.float64,
    "occupied": np.int64,
    "iterations": np.int64,
    "alpha": np.float64,
    "gamma": np.float64,
    "eta": np.float64,
    "seconds": np.float64,
}


@dataclass_state
class HDPTopicsState(StepMethodState):
    """State from which a chain can be continued.

    Attributes
    ----------
    labels, word_counts, tables, weights, log_rest
        The fields of `topics.state.TopicState`; None before the first draw.
    tuning : tuple
        The fields of `tuning.progress.TuningProgress`.
    parts : ndarray of float32, shape (T, P), or None
        The topics that are being recorded.
    """

    labels: np.ndarray | None = None
    word_counts: np.ndarray | None = None
    tables: np.ndarray | None = None
    weights: np.ndarray | None = None
    log_rest: float = 0.0
    tuning: tuple[Any, ...] = ()
    parts: np.ndarray | None = None


class HDPTopicsStep(TunedIterations, BlockedStep):
    """Step method for the topics of documents: exact sweeps over all tokens.

    PyMC assigns it to every `HDPTopics` automatically; options are passed as
    ``pm.sample(topics={"threads": 2})``.

    Parameters
    ----------
    vars : sequence of variables
        All variables of one topic model.
    model : pymc.Model, optional
        By default the model of the context.
    rng : numpy.random.Generator or int, optional
        `pm.sample` passes one for every chain.
    initial_point : dict, optional
        Passed by `pm.sample` to every step method.
    compile_kwargs : dict, optional
        Arguments for the function that computes the concentrations.
    blocked : bool
        Not used: the variables of a topic model always move together.
    threads : int
        Number of threads, at most the number of cores.  The draws do not depend on it.
    iterations : int, optional
        Sweeps per draw.  By default as many as cost little beside the rest of a draw; a chain that
        mixes slowly in the second half of tuning gets more, while a draw takes no longer than about
        50 ms.
    start_topics : int, optional
        Number of topics to start from, to which tokens belong at random.  By default 50; of fewer
        than 1000 tokens each chain draws it log-uniformly from one for every 20 tokens to one for
        every token, so that chains start over-dispersed.

    Notes
    -----
    The step also moves each concentration that depends on one scalar variable, with the global
    weights or the topics summed out.  ``{name}_log_joint`` is eq. (15.11) of docs/method.md.

    Raises
    ------
    ValueError
        If an option is out of range, or the variables are not those of one topic model.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_dpsplit as dps
    >>> with pm.Model() as model:
    ...     _ = dps.HDPTopics("w", 1.0, 1.0, 0.1, observed=[[3, 1, 0], [0, 0, 4]])
    ...     step = dps.HDPTopicsStep(model.free_RVs, start_topics=2)
    >>> step.name
    'topics'
    """

    name = "topics"
    _state_class = HDPTopicsState

    def __init__(
        self,
        vars: Any = None,
        *,
        model: Model | None = None,
        rng: Any = None,
        initial_point: Any = None,
        compile_kwargs: dict[str, Any] | None = None,
        blocked: bool = True,
        threads: int = 1,
        iterations: int | None = None,
        start_topics: int | None = None,
    ) -> None:
        del blocked
        model = model_of_context(model)
        check_integer("threads", threads, 1)
        if iterations is not None:
            check_integer("iterations", iterations, 1)
        if start_topics is not None:
            check_integer("start_topics", start_topics, 1)
        self.topics = owner_of(find_topic_models(model), vars, model, *_KIND)
        self.vars = [model.rvs_to_values[rv] for rv in self.topics.owned]
        self.data_read = DataRead(self.topics.name, self.topics.concentrations.values())
        self.rng = get_random_generator(rng)
        self.threads, self.iterations, self.start_topics = threads, iterations, start_topics
        point = model.initial_point() if initial_point is None else initial_point
        graphs = model.replace_rvs_by_values(list(self.topics.concentrations.values()))
        options = {"on_unused_input": "ignore", **(compile_kwargs or {})}
        self._inputs = [str(value.name) for value in model.value_vars]
        self._evaluate = compile_function(model.value_vars, graphs, **options)
        own = {*self.topics.owned, self.topics.rv}
        self._priors = priors_to_move(self.topics.concentrations, own, model, point)
        self.vars += moved_alone(self._priors)
        self._corpus = corpus_of(self.topics.rows)
        self._strengths_at(point)
        names: dict[str, Any] = {
            f"{self.topics.name}_{key}": (of, []) for key, of in _STATS.items()
        }
        op = self.topics.op
        self._record = TopicRecord(op.max_topics, op.n_words)
        names[f"{self.topics.name}_{TOPIC_DRAW}"] = (np.int64, [])
        length = self._record.part_length
        row = np.dtype((np.float32, (length,)))
        names[f"{self.topics.name}_{TOPIC_PART}"] = (row, [length])
        self.stats_dtypes_shapes = names
        self.stats_dtypes = [{key: of for key, (of, _) in names.items()}]
        self._forget()

    def _forget(self) -> None:
        """Reset the state of the chain."""
        self.labels: np.ndarray | None = None
        self.word_counts = self.tables = self.weights = np.empty(0)
        self.log_rest = 0.0
        self.progress = before_tuning(0)
        self.parts: np.ndarray | None = None
        self._pool: ThreadPoolExecutor | None = None

    def setup_chain(self, rng: Any, tune: int, draws: int) -> None:
        """Reset the state; PyMC calls this at the start of each chain.

        Parameters
        ----------
        rng : numpy.random.Generator
        tune, draws : int
            Number of tuning draws and of draws kept.
        """
        super().setup_chain(rng, tune, draws)
        self._forget()
        self.progress = before_tuning(tune)

    def step(self, point: dict[str, np.ndarray]) -> tuple[dict[str, np.ndarray], list[Any]]:
        """Advance the chain by one draw.

        Parameters
        ----------
        point : dict
            Value of every variable; not modified.

        Returns
        -------
        point : dict
        stats : list of one dict
        """
        began = time.perf_counter()
        if self._pool is None:
            self._pool = new_pool(self.threads)
        strengths = self._strengths_at(point)
        state = self._state()
        floor = 1.0 / expected_tables(document_lengths(self._corpus), strengths.alpha)
        n_documents = len(self._corpus.first_token) - 1
        n_iterations = self.chosen_iterations(n_documents, cost_of_sweep(state))
        for left in reversed(range(n_iterations)):
            state = sweep_topics(self._corpus, state, strengths, floor, self.rng, self._pool)
            if left:
                state = redraw_weights(state, strengths.gamma, self.rng)
        point = self._with_new_concentrations(point, state)
        strengths = self._strengths_at(point)
        state = redraw_weights(state, strengths.gamma, self.rng)
        self.labels, self.word_counts, self.tables, self.weights, self.log_rest = state
        stats = self._stats(state, strengths, n_iterations)
        log_words, stats[f"{self.topics.name}_{TOPIC_PART}"] = self._recorded(state, strengths.eta)
        stats[f"{self.topics.name}_{TOPIC_DRAW}"] = self.progress.n_kept
        self.progress = with_draw(self.progress, stats, self.topics.name)
        stats[f"{self.topics.name}_seconds"] = time.perf_counter() - began
        return {**point, **self.topics.point_values(state, log_words)}, [stats]

    def _state(self) -> TopicState:
        """State of the chain: that of the previous draw, or a new start."""
        if self.labels is not None:
            parts: Any = self.labels, self.word_counts, self.tables, self.weights, self.log_rest
            return TopicState(*parts)
        n_tokens = int(self._corpus.first_token[-1])
        n_start = self.start_topics or draw_n_topics(n_tokens, self.rng)
        return start_topics(self._corpus, min(n_start, n_tokens), self.rng)

    def _strengths_at(self, point: dict[str, np.ndarray]) -> Strengths:
        """Concentrations at a point."""
        numbers = self._evaluate(*(point[name] for name in self._inputs))
        strengths = Strengths(*map(float, numbers))
        for key, value in strengths._asdict().items():
            if not 0.0 < value < np.inf:
                varies = bool(rvs_in_graph(self.topics.concentrations[key]))
                fault = fault_of_concentration(key, float(value), varies)
                raise ValueError(f"{self.topics.name}: {fault}")
        if strengths.gamma > MOST_GAMMA:
            raise ValueError(
                f"{self.topics.name}: gamma is {strengths.gamma:g} in a draw, for which a sweep "
                "draws more than a million topics; give gamma a smaller value, or a prior with a "
                "lighter tail."
            )
        return strengths

    def _with_new_concentrations(
        self, point: dict[str, np.ndarray], state: TopicState
    ) -> dict[str, np.ndarray]:
        """Slice-sample the variables behind the concentrations, eq. (15.7) and (15.12)."""
        factors = {
            "alpha": alpha_factor(self._corpus, state),
            "gamma": gamma_factor(state),
            "eta": eta_factor(state),
        }
        return move_scalars(self._priors, factors, point, self.rng)

    def _recorded(self, state: TopicState, eta: float) -> tuple[float | None, np.ndarray]:
        """Sum of the logarithms of the probabilities of words, and what the draw has of them."""
        n_kept = self.progress.n_kept
        is_kept, place = n_kept >= 0, max(0, n_kept) % self._record.n_parts
        log_phi = None
        if self.topics.op.eta_varies or (is_kept and place == 0):
            log_phi = draw_log_topics(self.rng, state.word_counts, eta)
        if log_phi is not None and place == 0:
            largest = np.argsort(-state.weights, kind="stable")[: self._record.n_topics]
            self.parts = self._record.divided(np.exp(log_phi[:, largest].T))
        part = np.zeros(self._record.part_length, np.float32)
        if self.parts is not None:
            part = self.parts[place]
        return (None if log_phi is None else float(log_phi.sum())), part

    def _stats(self, state: TopicState, strengths: Strengths, n_iterations: int) -> dict[str, Any]:
        """Statistics of a draw, except its seconds."""
        given = self._corpus, state.labels, state.weights, strengths.alpha
        shares = state.word_counts.sum(axis=0) / len(state.labels)
        values = {
            "log_joint": log_joint(log_probability_of_topics(*given), state, strengths.eta),
            "entropy": -float(np.sum(shares * np.log(shares))),
            "largest_share": shares.max(),
            "occupied": len(shares),
            "iterations": n_iterations,
            **strengths._asdict(),
        }
        return {f"{self.topics.name}_{key}": value for key, value in values.items()}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the threads, which belong to one process."""
        return {**self.__dict__, "_pool": None}

    @staticmethod
    def competence(var: Any, has_grad: bool) -> Competence:
        """Claim the variables that belong to a topic model, and no others.

        Parameters
        ----------
        var : TensorVariable
        has_grad : bool

        Returns
        -------
        Competence
        """
        del has_grad
        return Competence.IDEAL if is_owned(var, HDPTopicsStep.name) else Competence.INCOMPATIBLE


register_step(HDPTopicsStep)
ordering = steps_last(HDPTopicsStep)
