"""The number of components of galaxies, against the published posterior.

Richardson & Green (1997, Journal of the Royal Statistical Society B 59, 731-792) sample it by
reversible jumps: one to 30 normal components, means and precisions independent a priori, and a
random scale of the precisions.  Miller & Harrison (2018, section 7.1) reproduce the same figures
with mixtures of finite mixtures.  Here it is a model of PyMC: `MFMixture` with a `Component`, and
NUTS for the scale.
"""

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.demo import DATA_SETS
from tests.support.statistics import LEVEL

pytestmark = pytest.mark.slow

# Probabilities of 3, 4, .. 11 components; those of one and two are 0.000.
PUBLISHED = np.array([0.061, 0.128, 0.182, 0.199, 0.160, 0.109, 0.071, 0.040, 0.023])
FIRST = 3


def p_value(gamma: float) -> float:
    """P-value of the nine probabilities."""
    rows = DATA_SETS["galaxies"].load()[0].ravel()
    middle, span = (rows.min() + rows.max()) / 2, np.ptp(rows)
    with pm.Model():
        scale = pm.Gamma("scale", 0.2, 10 / span**2)
        mean, precision = pm.Normal.dist(middle, span), pm.Gamma.dist(2.0, scale)
        normal = dps.Component(pm.Normal, mu=mean, tau=precision)
        prior = pm.DiscreteUniform.dist(1, 30)
        dps.MFMixture("x", gamma, normal, n_components=prior, observed=rows)
        idata = pm.sample(2500, tune=1000, chains=4, cores=1, random_seed=3, progressbar=False)
    numbers = idata["posterior"]["x_n_components"].to_numpy()
    has = numbers[..., None] == np.arange(FIRST, FIRST + len(PUBLISHED))
    errors = np.array([float(az.mcse(has[..., k].astype(float))) for k in range(len(PUBLISHED))])
    # The published figures come from a chain too, and are rounded.
    spread = np.sqrt(2.0 * errors**2 + 0.001**2 / 12.0)
    z = (has.mean(axis=(0, 1)) - PUBLISHED) / spread
    return min(1.0, len(z) * float(2.0 * stats.norm.sf(np.abs(z).max())))


def test_number_of_components_is_the_published_one() -> None:
    assert p_value(1.0) > LEVEL


@pytest.mark.control
def test_other_weights_are_caught() -> None:
    assert p_value(0.5) < LEVEL
