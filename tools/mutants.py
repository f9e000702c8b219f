"""How good are the tests? Change one sign, comparison or number of a module and see whether anything notices.

    nice -n 19 .venv/bin/python tools/mutants.py [--seed 0] [--each 40] [--only sweep,grow] [--jobs 2] [--least 0.85] [--memory .mutants.json]

Each mutant is made in a copy of the repository. First the module's properties run, without compilation; what survives them meets the cells of the module's chapter
(those that do not export) and the tests named below. A mutant that takes too much of the processor's time counts as noticed: a loop that does not end is a symptom.
Printed are the survivors and the share of those that were killed, module by module; the exit code is 0 if that is at least 85%, or what --least says.

The run takes hours, so it can be interrupted: `.mutants.json` remembers. What was killed stays killed while the module's source is the same, what survived meets the tests
again. Remove the file to begin anew.

Some mutants survive because they change nothing that can be observed. `REASONS` says why, for those that were looked at.
"""

import argparse
import ast
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).parent.parent
MODULES = {  # chapter, properties that run first, test files that run last
    "gram": (
        "140_gram",
        ["streamed_dense_and_full_rank", "distance_lemma", "copies_are_weights"],
        ["test_gram.py", "test_determinism.py -k blocks"],
    ),
    "surrogate": (
        "220_surrogate",
        [
            "root_features",
            "exact_features_of_laplace",
            "exact_features_of_additive",
            "fitted_features",
            "taylor_features",
        ],
        ["test_surrogate.py"],
    ),
    "imm": (
        "250_imm",
        [
            "codes_and_ends",
            "every_cut_of_imm",
            "every_cut_of_kernel_imm",
            "bound_of_imm",
            "imm_knows_no_order",
        ],
        ["test_imm.py"],
    ),
    "sweep": (
        "260_sweep",
        ["the_sweep_is", "costs_in_integers"],
        ["test_tree.py -k sweep", "test_grow.py -k sweep"],
    ),
    "grow": (
        "270_grow",
        ["growth_knows", "monotone_map", "two_leaves"],
        ["test_tree.py -k 'growth or xor or refused or bins'", "test_grow.py"],
    ),
    "oblivious": (
        "280_oblivious",
        [],
        ["test_oblivious.py"],
    ),
    "price": (
        "310_price",
        ["decoupling", "the_cost_knows", "costs_fall"],
        ["test_price.py -k 'not thousand and not price_upper'"],
    ),
    "certificate": (
        "330_certificate",
        ["explained_or_is_refused"],
        ["test_price.py -k 'not thousand and not price_upper'"],
    ),
    "exact": (
        "350_exact",
        ["best_cut"],
        ["test_price.py -k 'best_tree or side'"],
    ),
}
COMPARE = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATE = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
NAMES = {
    "min": "max",
    "max": "min",
    "argmin": "argmax",
    "argmax": "argmin",
    "minimum": "maximum",
    "maximum": "minimum",
    "any": "all",
    "all": "any",
}
REASONS = {  # of a module: in which line, what was changed, and why nothing can notice
    "sweep": [
        ("stay = 2**62", "62 -> 63", "more than any sum, or twice that"),
    ],
    "grow": [
        ("gain: int = -1", "without USub", "a gain without a cut is never asked for"),
        (
            "@dataclass(eq=False)",
            "False -> True",
            "leaves have different numbers: equality is identity, more slowly",
        ),
        ("EXACT_UP_TO = 200_000", "", "one point more or less before bins"),
        (
            "np.flatnonzero(tree.left < 0)",
            "tree.left < 0: Lt -> LtE",
            "the root, node 0, is nobody's child",
        ),
        ("np.flatnonzero(tree.left >= 0)", "", "the root, node 0, is nobody's child"),
    ],
    "imm": [
        (
            "if len(hi) > 1 else 0.0",
            "1 -> 0",
            "the scale of a single end is infinite, and not used either",
        ),
        ("(reach or 1.0)", "1.0 -> 0.0", "a column of one value has no gaps"),
        (
            "interval = 2**62, -1.0, (m, m, -1, 0.0, False)",
            "False -> True",
            "where no threshold was found, nobody asks on which side",
        ),
        (
            "(below < rounded)",
            "below < rounded: Lt -> LtE",
            "an end that equals the value below is replaced by it two lines on",
        ),
    ],
    "surrogate": [
        ("FEW_KNOTS = 256", "", "one landmark more or less"),
        (
            "(weight * t**2 / 2)[:, None]",
            "2 -> 3",
            "a wrong scale of all derivatives: the fit takes other steps to the same end",
        ),
        ("weight * t**2 / 2 *", "Div -> Mult", "a constant factor of all errors: the same fit"),
        ("MOST_KNOTS = 2000", "", "one value more or less before quantiles are taken"),
        (
            "np.zeros((len(z), 1))",
            "1 -> 0",
            "a column of zeros: one feature or none, neither can be cut",
        ),
    ],
    "price": [
        ("size_of_terms =", "2 -> 3", "a margin for rounding that is a little wider"),
        ("np.hstack(blocks[1:])", "1 -> 0", "one block of vectors more: a bound as well"),
        ("[:, ::-1][:, :m]", "m -> m + 1", "one vector more: a bound as well"),
    ],
    "certificate": [
        ("if gram.n > 1000", "1000 -> 1001", "one row more or less before a sample is taken"),
        (
            "AXIS_UP_TO = 20_000",
            "",
            "one value more or less before the kernel of an axis is too large",
        ),
        (
            "abs(c.price - 1) < 5e-6",
            "Lt -> LtE",
            "a price that is exactly 1 + 5e-6: other words for it",
        ),
        (
            "if most > limit",
            "Gt -> GtE",
            "exactly as many values as the limit: no chain instead of a long one",
        ),
    ],
    "exact": [
        (
            "if sides in seen or sides[::-1] in seen",
            "",
            "a division that is searched twice: the same tree, later",
        ),
        (
            "cost = self._cost(plan, alone, best.cost - self.noise)",
            "best.cost - self.noise: Sub -> Add",
            "a branch that cannot win is left a little later: the same tree",
        ),
    ],
    "gram": [
        (
            "0 < number < 1 or number >= 1",
            "number < 1: Lt -> LtE",
            "a rank of 1 is allowed either way",
        ),
        ("length_hint(items, 1 << 30)", "", "another number that is larger than any"),
        ("most < 2", "", "a pool of threads for one piece of work, or none for two"),
        ("len(waiting) > 2 * count", "", "a few results more or fewer that wait"),
        ("STRIP", "", "more or fewer rows at a time: the same entries"),
        ("BLOCKS_PER_TASK", "", "more or fewer blocks at a time: added in the same order"),
        ("copy=False", "False -> True", "a copy that was not needed"),
        ("block: int = 1 << 14", "", "larger or smaller blocks: the same sums"),
        ("lost = 4 * np.sqrt", "4 -> 5", "a margin that is a little wider"),
        ("FLOAT64_UP_TO = 200_000", "", "one point more or less before single precision"),
    ],
}
PATIENCE = 4  # times as many seconds of the processor as without a mutant, and ten more; other work on the machine does not count
EACH = 40  # mutants of each module, unless more are asked for
MEMORY = ROOT / ".mutants.json"


class Mutator(ast.NodeTransformer):
    "Makes the change number `wanted`, counting all that could be made; with none wanted it only counts."

    def __init__(self, wanted=None):
        self.wanted, self.count, self.said = wanted, 0, ""

    def chosen(self, node, what):
        self.count += 1
        if self.count - 1 == self.wanted:
            self.said = f"line {node.lineno}: {what}"
            return True
        return False

    def visit_Raise(self, node):  # what an error says is not at stake
        return node

    def visit_FunctionDef(self, node):
        node.body = [self.visit(part) for part in node.body]
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        return node

    def visit_AnnAssign(self, node):
        node.value = node.value and self.visit(node.value)
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if ast.unparse(node.func) == "warnings.warn":
            return node
        if name in NAMES and self.chosen(node, f"{name} -> {NAMES[name]}"):
            setattr(node.func, "id" if isinstance(node.func, ast.Name) else "attr", NAMES[name])
        return node

    def visit_Compare(self, node):
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        for i, op in enumerate(node.ops):
            one = ast.unparse(
                ast.Compare(sides[i], [op], [sides[i + 1]])
            )  # of a chain, the one that is changed
            if type(op) in COMPARE and self.chosen(
                node, f"{one}: {type(op).__name__} -> {COMPARE[type(op)].__name__}"
            ):
                node.ops[i] = COMPARE[type(op)]()
        return node

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if type(node.op) in OPERATE and self.chosen(
            node,
            f"{ast.unparse(node)}: {type(node.op).__name__} -> {OPERATE[type(node.op)].__name__}",
        ):
            node.op = OPERATE[type(node.op)]()
        return node

    visit_AugAssign = visit_BinOp

    def visit_BoolOp(self, node):
        self.generic_visit(node)
        if self.chosen(node, f"{ast.unparse(node)}: and <-> or"):
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return node

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        if isinstance(node.op, (ast.Not, ast.USub, ast.Invert)) and self.chosen(
            node, f"{ast.unparse(node)}: without {type(node.op).__name__}"
        ):
            return node.operand
        return node

    def visit_Constant(self, node):
        if type(node.value) in (int, float) and self.chosen(
            node, f"{node.value} -> {1 - node.value if node.value in (0, 1) else node.value + 1}"
        ):
            node.value = 1 - node.value if node.value in (0, 1) else node.value + 1
        elif type(node.value) is bool and self.chosen(node, f"{node.value} -> {not node.value}"):
            node.value = not node.value
        return node

    def visit_Slice(self, node):
        self.generic_visit(node)
        for end in ("lower", "upper"):
            at = getattr(node, end)
            if (
                at is not None
                and not isinstance(at, ast.Constant)
                and self.chosen(at, f"{ast.unparse(at)} -> {ast.unparse(at)} + 1 in a slice")
            ):
                setattr(node, end, ast.BinOp(at, ast.Add(), ast.Constant(1)))
        return node


def mutant(source, wanted=None):
    "The source with one change, what it is, and how many changes there are to choose from."
    changed = Mutator(wanted)
    tree = ast.fix_missing_locations(changed.visit(ast.parse(source)))
    return ast.unparse(tree), changed.said, changed.count


PROPERTIES = """
import sys, warnings
sys.path[:0] = [".", "tests", "site"]
import test_properties as tests
names = [name for name in dir(tests) if name.startswith("test_") and any(part in name for part in sys.argv[1:])]
assert all(any(part in name for name in names) for part in sys.argv[1:])
for name in names:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        getattr(tests, name)()
"""
CHAPTER = """
import json, sys, warnings
import matplotlib
matplotlib.use("agg")
sys.path.insert(0, ".")
from importlib import import_module
from IPython.core.inputtransformer2 import TransformerManager
module = import_module(f"kxbook.{sys.argv[2]}")
space = {"__name__": "__main__"}
for cell in json.load(open(sys.argv[1]))["cells"]:
    source = "".join(cell["source"])
    head = [line for line in source.split("\\n") if line.startswith("#|")]
    if cell["cell_type"] != "code" or any(word in " ".join(head) for word in ("slow", "eval: false", "default_exp", "label: fig")):
        continue
    if any("export" in line for line in head):
        space.update({name: value for name, value in vars(module).items() if not name.startswith("__")})
        continue
    exec(compile(TransformerManager().transform_cell(source), "cell", "exec"), space)
"""


def run(command, copy, seconds, **variables):
    "None if the command ends well in that time of the processor, else why it does not. One that only waits is given up too, much later."
    env = (
        os.environ
        | {
            "PYTHONPATH": str(copy),
            "HYPOTHESIS_PROFILE": "mutants",
            "MPLBACKEND": "agg",
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        | variables
    )
    limited = ["sh", "-c", f'ulimit -t {int(seconds)}; exec "$@"', "sh", *command]
    try:
        done = subprocess.run(
            limited, cwd=copy, env=env, timeout=10 * seconds, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        return "takes too long"
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "takes too long"
    return (
        None
        if done.returncode == 0
        else ((done.stderr.strip() or done.stdout.strip()).splitlines() or ["?"])[-1][:100]
    )


def stages(copy, module):
    "The checks of a module, quick ones first: names and functions that say None or what is wrong, given the seconds they may take."
    chapter, properties, files = MODULES[module]
    yield (
        "properties",
        lambda seconds: run(
            [sys.executable, "-c", PROPERTIES, *properties], copy, seconds, NUMBA_DISABLE_JIT="1"
        ),
    )
    yield (
        "chapter",
        lambda seconds: run(
            [sys.executable, "-c", CHAPTER, f"nbs/{chapter}.ipynb", module], copy, seconds
        ),
    )
    for file in files:
        name, _, words = file.partition(" -k ")
        more = ["-k", words.strip("'")] if words else []
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-n",
            "0",
            "-p",
            "no:cacheprovider",
            f"tests/{name}",
            *more,
        ]
        yield name, lambda seconds, command=command: run(command, copy, seconds)


def limits(copy, module):
    "How many seconds each check may take, from how many it takes without a mutant."
    found = []
    for name, check in stages(copy, module):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        if why := check(900):
            sys.exit(f"{module}: the tests fail without any mutant: {name}: {why}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(
            10 + PATIENCE * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        )
    return found


def attempt(copy, module, source, wanted, seconds):
    "Make one mutant in the copy; what is changed, what notices it (or None), and after how many seconds."
    text, said, _ = mutant(source, wanted)
    path = copy / "kxbook" / f"{module}.py"
    path.write_text(text, encoding="utf-8")
    start = time.monotonic()
    by = next(
        (
            f"{name}: {why}"
            for (name, check), most in zip(stages(copy, module), seconds)
            if (why := check(most))
        ),
        None,
    )
    path.write_text(source, encoding="utf-8")
    line, _, change = said.partition(": ")
    code = source.splitlines()[int(line.split()[1]) - 1].strip()
    return {
        "line": line,
        "change": f"{change} in {code}",
        "by": by,
        "seconds": round(time.monotonic() - start),
    }


def reason(module, change):
    "Why nothing notices a change, if that was looked at."
    return next(
        (
            why
            for part, what, why in REASONS[module]
            if part in change.split(" in ", 1)[1] and what in change.split(" in ", 1)[0]
        ),
        "not looked at yet",
    )


def draw(module, total, seed):
    "All mutants in the order of a seed, so that more of them are the same and others."
    return random.Random(f"{seed} {module}").sample(range(total), total)


def copies(folder, many):
    "A queue of copies of the repository, for as many mutants at once."
    queue = Queue()
    for number in range(many):
        copy = Path(folder) / str(number)
        for name in ("kxbook", "nbs", "tests", "site"):
            shutil.copytree(
                ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", ".*")
            )
        for name in ("pyproject.toml", "settings.ini"):
            shutil.copy(ROOT / name, copy)
        queue.put(copy)
    return queue


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", type=int, default=EACH, help="mutants of each module")
    parser.add_argument("--only", default=",".join(MODULES), help="modules, with commas")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at once")
    parser.add_argument("--least", type=float, default=0.85, help="share that must be killed")
    parser.add_argument("--memory", type=Path, default=MEMORY, help="file that remembers")
    args = parser.parse_args()
    memory = json.loads(args.memory.read_text(encoding="utf-8")) if args.memory.exists() else {}
    killed = made = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.jobs) as pool:
        free = copies(folder, args.jobs)
        for module in args.only.split(","):
            source = (ROOT / "kxbook" / f"{module}.py").read_text(encoding="utf-8")
            total, mark = mutant(source)[2], hashlib.sha256(source.encode()).hexdigest()
            usual = draw(module, total, 0)[:EACH] if args.seed else []  # other seeds give others
            chosen = sorted(
                [w for w in draw(module, total, args.seed) if w not in usual][: args.each]
            )
            known = memory.get(module, {})
            tried = known["tried"] if known.get("source") == mark else {}
            todo = [w for w in chosen if not tried.get(str(w), {}).get("by")]
            copy = free.get()
            seconds = limits(copy, module) if todo else []
            free.put(copy)

            def one(wanted):
                copy = free.get()
                try:
                    return wanted, attempt(copy, module, source, wanted, seconds)
                finally:
                    free.put(copy)

            for wanted, found in pool.map(one, todo):
                tried[str(wanted)] = found
                print(
                    f"{module} {'killed  ' if found['by'] else 'SURVIVED'} {found['line']}: {found['change']}   [{found['by'] or reason(module, found['change'])}] ({found['seconds']} s)",
                    flush=True,
                )
                memory[module] = {"source": mark, "possible": total, "tried": tried}
                args.memory.write_text(json.dumps(memory, indent=1), encoding="utf-8")
            mine = sum(bool(tried[str(w)]["by"]) for w in chosen)
            print(
                f"{module}: {mine} of {len(chosen)} killed, out of {total} possible changes",
                flush=True,
            )
            killed, made = killed + mine, made + len(chosen)
    print(f"{killed} of {made} killed: {killed / made:.0%}")
    return killed < args.least * made


if __name__ == "__main__":
    sys.exit(main())
