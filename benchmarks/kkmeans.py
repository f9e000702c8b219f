"""Kernel k-means on moons (d = 2, k = 2) and blobs (d = 10, k = 10): time, extra memory and cost, medians of three, each run in a process of its own."""

import json
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

SIZES = {"moons": (2000, 10_000, 100_000), "blobs": (2000, 10_000, 100_000)}
STORES_K = 10_000  # rivals that store K get no more points than this
LIMIT = 180  # seconds after which a run is given up
ROUNDS = 3


def data(name, n):
    from sklearn.datasets import make_blobs, make_moons

    if name == "moons":
        return *make_moons(n, noise=0.06, random_state=0), 2, 15.0
    X, y = make_blobs(n, 10, centers=10, cluster_std=3.0, random_state=0)
    return X, y, 10, 0.01


def ours(X, k, gamma, seed, **options):
    from kxbook import KernelKMeans

    return KernelKMeans(k, gamma=gamma, random_state=seed, **options).fit(X).labels_


def plain_numpy(X, k, gamma, seed):
    "The textbook: a stored matrix, random labels, ten starts, all sums anew in each pass."
    from sklearn.metrics.pairwise import rbf_kernel

    K, rng, best = rbf_kernel(X, gamma=gamma), np.random.default_rng(seed), (np.inf, None)
    for _ in range(10):
        labels = rng.integers(k, size=len(X))
        for _ in range(300):
            V = np.eye(k)[labels]
            size = np.maximum(V.sum(0), 1)
            S = K @ V
            D = 1 - 2 * S / size + (V * S).sum(0) / size**2
            D[:, V.sum(0) == 0] = np.inf
            new = D.argmin(1)
            if (new == labels).all():
                break
            labels = new
        cost = D[np.arange(len(X)), labels].sum()
        best = min(best, (cost, labels), key=lambda pair: pair[0])
    return best[1]


def tslearn(X, k, gamma, seed):
    import warnings

    warnings.simplefilter("ignore")
    from tslearn.clustering import KernelKMeans

    model = KernelKMeans(
        k, kernel="rbf", kernel_params={"gamma": gamma}, n_init=10, max_iter=300, random_state=seed
    )
    return model.fit(X[:, :, None]).labels_


def nystroem_kmeans(X, k, gamma, seed):
    from sklearn.cluster import KMeans
    from sklearn.kernel_approximation import Nystroem

    Z = Nystroem(gamma=gamma, n_components=200, random_state=seed).fit_transform(X)
    return KMeans(k, n_init=10, random_state=seed).fit(Z).labels_


CONTENDERS = {
    "kxbook": (ours, None),
    "kxbook, float32": (lambda *a: ours(*a, dtype="float32"), None),
    "kxbook, nystroem": (lambda *a: ours(*a, gram="nystroem"), None),
    "Nystroem + KMeans": (nystroem_kmeans, None),
    "plain NumPy": (plain_numpy, STORES_K),
    "tslearn": (tslearn, STORES_K),
}


def one(contender, name, n, seed):
    "Time, extra memory and labels of one run, in this process."
    X, _, k, gamma = data(name, n)
    run = CONTENDERS[contender][0]
    run(X[:200], k, gamma, 0)  # imports and warms up
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    labels = run(X, k, gamma, seed)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        json.dumps(
            {
                "seconds": seconds,
                "megabytes": (after - before) / 1024,
                "labels": np.asarray(labels).tolist(),
            }
        )
    )


def measure(say):
    from sklearn.metrics import adjusted_rand_score

    from kxbook.gram import StreamedGram
    from kxbook.kernel import gaussian
    from kxbook.kkmeans import lloyd

    rows = []
    for name, sizes in SIZES.items():
        for n in sizes:
            X, y, k, gamma = data(name, n)
            gram, found, given_up = StreamedGram(gaussian(gamma), X), {}, set()
            fits = [c for c, (_, most) in CONTENDERS.items() if most is None or n <= most]
            for seed in range(ROUNDS):
                for contender in fits:
                    command = [sys.executable, __file__, contender, name, str(n), str(seed)]
                    if contender in given_up:
                        continue
                    try:
                        done = subprocess.run(
                            command,
                            capture_output=True,
                            text=True,
                            timeout=None if contender.startswith("kxbook") else LIMIT,
                        )
                    except subprocess.TimeoutExpired:
                        given_up.add(contender)
                        say(f"{name} {n} {contender}: given up after {LIMIT} s")
                        continue
                    if done.returncode:
                        sys.exit(f"{contender} failed on {name}, n = {n}:\n{done.stderr}")
                    found.setdefault(contender, []).append(json.loads(done.stdout.splitlines()[-1]))
                    say(f"{name} {n} {contender}: {found[contender][-1]['seconds']:.1f} s")
            nothing = {"extra MB": None, "kernel cost": None, "ARI": None}
            rows += [
                {"what": contender, "data": name, "n": n, "seconds": f"> {LIMIT}"} | nothing
                for contender in sorted(given_up)
            ]
            for contender, runs in found.items():
                if contender in given_up:
                    continue
                labels = [np.array(run["labels"]) for run in runs]
                costs = [
                    lloyd(gram, l, k, max_iter=0).cost
                    for l in (labels if n <= STORES_K else labels[:1])
                ]
                rows.append(
                    {
                        "what": contender,
                        "data": name,
                        "n": n,
                        "seconds": statistics.median(run["seconds"] for run in runs),
                        "extra MB": statistics.median(run["megabytes"] for run in runs),
                        "kernel cost": statistics.median(costs),
                        "ARI": float(statistics.median(adjusted_rand_score(y, l) for l in labels)),
                    }
                )
    return rows


if __name__ == "__main__":
    one(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
