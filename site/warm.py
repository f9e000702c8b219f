"What most chapters load when they first fit, draw or print: loaded before processes divide, it is there in each of them."

import gc
import io

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from tqdm import tqdm

from kxbook import IMM, KernelExKMC, KernelIMM, KernelTree

_interval, tqdm.monitor_interval = tqdm.monitor_interval, 0  # a thread would not be copied
_points = np.random.default_rng(0).normal(size=(40, 2))
for _model in (
    IMM(2, random_state=0),
    KernelIMM(2, kernel="laplace", random_state=0),
    KernelExKMC(2, base="empty", random_state=0),
    KernelTree(2, random_state=0),
):
    _model.fit(_points).certificate()
tqdm.monitor_interval = _interval
_figure = Figure()
_figure.subplots().set_title("$x$")
FigureCanvasAgg(_figure).print_png(io.BytesIO())
gc.collect()
gc.freeze()  # the collector need not look at it again
