"""What most chapters load when they first fit and draw: loaded before processes divide, it is there in each of them.

It is found where a run begins in the folder of the project; elsewhere each process loads it for itself.
"""

import gc
import io
from contextlib import suppress

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from tqdm import tqdm


def fit_each_kind():
    from kxbook import IMM, KernelExKMC, KernelIMM, KernelTree

    points = np.random.default_rng(0).normal(size=(40, 2))
    for model in (
        IMM(2, random_state=0),
        KernelIMM(2, kernel="laplace", random_state=0),
        KernelExKMC(2, base="empty", random_state=0),
        KernelTree(2, random_state=0),
    ):
        model.fit(points).certificate()


def draw():
    figure = Figure()
    figure.subplots().set_title("$x$")
    FigureCanvasAgg(figure).print_png(io.BytesIO())


interval, tqdm.monitor_interval = tqdm.monitor_interval, 0  # a thread would not be copied
with suppress(Exception):  # a mistake of the package belongs to the cell that meets it
    fit_each_kind()
tqdm.monitor_interval = interval
draw()
gc.collect()
gc.freeze()  # the collector need not look at it again
