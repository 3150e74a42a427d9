#!/usr/bin/env python3
"""Times our attention kernels and those that torch has, in turns on one GPU, and writes peers.csv and peers.png.

For each shape all kernels are prepared and warmed up; then each round times one burst of each, and a kernel's number
is the median of its rounds. While one process times, the other waits: our kernels run in bench_attention --serve,
which answers when its work is done, and torch is synchronised before it is asked.
"""

import argparse
import contextlib
import csv
import datetime
import gc
import importlib.util
import math
import os
import signal
import statistics
import subprocess
import sys
import time

from problems import read_shapes
from serving import Refused, Server

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BURST_MS, WARM_UP_MS, MAX_CALLS = 20.0, 100.0, 500  # as in bench/attention/session.c
LEAST_ROUNDS = 3  # of a shape that the budget cuts short
PEER_NAMES = ["cudnn", "flash2", "varlen2", "padded_cudnn", "flex", "fa3"]
DENSE_PEERS = ["cudnn", "flash2", "flex", "fa3"]
JAGGED_PEERS = ["varlen2", "padded_cudnn", "flex", "fa3"]


class OutOfTime(BaseException):
    """Not an Exception: whoever catches those while a kernel is compiled must not catch this."""


def on_alarm(signal_number, frame):
    raise OutOfTime("took too long")


def on_end(signal_number, frame):
    raise KeyboardInterrupt


@contextlib.contextmanager
def limit(seconds):
    """OutOfTime once the seconds are over; a call into a library is ended when it returns."""
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def first_line(error):
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:200]


# ---------------------------------------------------------------- kernels that can be timed


class Ours:
    def __init__(self, server, shape, variant):
        self.name = "ours" if variant == "base" else f"ours-{variant}"
        self.words = (shape.name, variant)
        self.server = server
        server.ask("prepare", *self.words)
        self.note = ""

    def time(self):
        return float(self.server.ask("time", *self.words))


class Peer:
    """The fastest of a peer's candidates."""

    def __init__(self, torch, name, candidates):
        self.torch = torch
        self.name = name
        self.candidate, self.calls, self.note = None, 1, ""
        self.best, self.problem = None, RuntimeError("it has no candidates")
        try:
            for candidate in candidates:
                self.try_candidate(candidate)
        except (Exception, OutOfTime) as error:  # a candidate can't be made, or the time is up: another may have worked
            self.problem = error
        if self.candidate is None:
            raise self.problem
        self.problem = None  # it holds on to memory

    def try_candidate(self, candidate):
        try:
            milliseconds, calls = self.warm_up(candidate)
        except Exception as error:
            self.problem = error
            return
        if self.best is None or milliseconds < self.best:
            self.best = milliseconds
            self.candidate, self.calls, self.note = candidate, calls, candidate.note

    def burst(self, candidate, calls):
        start = self.torch.cuda.Event(enable_timing=True)
        end = self.torch.cuda.Event(enable_timing=True)
        with candidate.context():
            start.record()
            for _ in range(calls):
                candidate.run()
            end.record()
        end.synchronize()
        return start.elapsed_time(end) / calls

    def warm_up(self, candidate):
        self.burst(candidate, 1)  # compiles, chooses, allocates
        once, total = self.burst(candidate, 1), 0.0
        calls = 1
        while total < WARM_UP_MS:
            calls = min(MAX_CALLS, int(BURST_MS / max(once, 1e-3)) + 1)
            once = self.burst(candidate, calls)
            total += once * calls
        return once, calls

    def time(self):
        # The first launches after the other process has had the GPU aren't timed.
        self.burst(self.candidate, self.calls // 4 + 1)
        return self.burst(self.candidate, self.calls)


# ---------------------------------------------------------------- one shape


class Bench:
    def __init__(self, options, torch, server):
        self.options = options
        self.torch = torch
        self.server = server
        self.end = time.monotonic() + options.budget

    def left(self):
        return self.end - time.monotonic()

    def synchronise(self):
        if self.torch is not None:
            self.torch.cuda.synchronize()

    def variants(self, shape):
        return cubin_variants(self.options, shape) if "all" in self.options.variant else self.options.variant

    def prepare(self, name, make, row):
        """The kernel, or None with the reason in the row's notes."""
        try:
            with limit(min(self.options.limit, self.left())):
                return make()
        except (Exception, OutOfTime) as error:
            row["notes"].append(f"{name}: {first_line(error)}")
            return None

    def prepare_all(self, shape, row):
        kernels = []
        for variant in self.variants(shape):
            self.synchronise()
            kernels.append(self.prepare(variant, lambda v=variant: Ours(self.server, shape, v), row))
        if self.torch is not None:
            import peer_kernels

            inputs = self.prepare("inputs", lambda: peer_kernels.Inputs(shape, "cuda"), row)
            for name in peers_of(self.options, shape) if inputs else []:
                make = peer_kernels.PEERS[name]
                kernels.append(self.prepare(name, lambda n=name, m=make: Peer(self.torch, n, m(inputs)), row))
                gc.collect()
                self.torch.cuda.empty_cache()  # of candidates that weren't chosen
        return [kernel for kernel in kernels if kernel is not None]

    def time_rounds(self, kernels, row):
        times = {kernel.name: [] for kernel in kernels}
        for done in range(self.options.rounds):
            if self.left() <= 0 and done >= LEAST_ROUNDS:
                break
            for kernel in list(kernels):
                self.synchronise()
                try:
                    times[kernel.name].append(kernel.time())
                except Exception as error:
                    row["notes"].append(f"{kernel.name}: {first_line(error)}")
                    kernels.remove(kernel)
                    del times[kernel.name]
        return times

    def shape(self, shape):
        row = {"notes": []}
        kernels = []
        try:
            kernels = self.prepare_all(shape, row)
            row["notes"] += [f"{kernel.name}: {kernel.note}" for kernel in kernels if kernel.note]
            times = self.time_rounds(kernels, row)
            row["times"] = {name: statistics.median(values) for name, values in times.items() if values}
            row["rounds"] = max((len(values) for values in times.values()), default=0)
        finally:
            kernels.clear()
            self.free()
        return row

    def free(self):
        with contextlib.suppress(Refused):
            if self.server.process is not None:
                self.server.ask("release")
        if self.torch is not None:
            if "torch._dynamo" in sys.modules:
                self.torch._dynamo.reset()  # compiled masks hold their tensors
            gc.collect()
            self.torch.cuda.empty_cache()


# ---------------------------------------------------------------- what there is to time


def cubin_variants(options, shape):
    """base, and whatever else the folder has for the shape's mask and head_dim."""
    start, end = f"{shape.mask}-{shape.head_dim}", ".ptx" if options.device.startswith("sim:") else ".cubin"
    names = sorted(name.removesuffix(end) for name in os.listdir(options.cubins) if name.endswith(end))
    return ["base"] * (start in names) + [n.removeprefix(start + "-") for n in names if n.startswith(start + "-")]


def peers_of(options, shape):
    if options.skip_peers:
        return []
    names = JAGGED_PEERS if shape.is_jagged else DENSE_PEERS
    missing = {"flex"} if options.skip_flex else set()
    if importlib.util.find_spec("flash_attn_interface") is None:
        missing.add("fa3")
    return [name for name in names if name not in missing]


def describe_machine(torch):
    facts = {"device": "", "driver": "", "torch": "", "date": datetime.date.today().isoformat()}
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        facts["driver"] = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split("\n")[0]
    if torch is not None:
        facts.update(device=torch.cuda.get_device_name(), torch=torch.__version__)
    return facts


# ---------------------------------------------------------------- results


def summarise(shape, row, facts):
    """A row's cells by column."""
    times = row.get("times", {})
    ours = {name: ms for name, ms in times.items() if name.startswith("ours")}
    peers = {name: ms for name, ms in times.items() if name not in ours}
    cells = {"shape": shape.name, "mask": shape.mask, "head_dim": shape.head_dim, "gflop": f"{shape.flop / 1e9:.1f}"}
    for name, ms in times.items():
        cells[f"{name}_ms"] = f"{ms:.5f}"
        cells[f"{name}_tflops"] = f"{shape.tflops(ms):.1f}" if ms > 0 else ""
    best_ours = min(ours, key=ours.get, default="")
    best_peer = min(peers, key=peers.get, default="")
    cells.update(best_ours=best_ours, best_peer=best_peer, rounds=row.get("rounds", 0), notes="; ".join(row["notes"]))
    if best_ours and best_peer and ours[best_ours] > 0:
        cells["speed_to_best_peer"] = f"{peers[best_peer] / ours[best_ours]:.3f}"
    return {**cells, **facts}


def write_csv(path, rows):
    names = {column[: -len("_ms")] for row in rows for column in row if column.endswith("_ms")}
    order = sorted(n for n in names if n.startswith("ours")) + [n for n in PEER_NAMES if n in names]
    columns = ["shape", "mask", "head_dim", "gflop", *(f"{n}_ms" for n in order), *(f"{n}_tflops" for n in order)]
    columns += ["best_ours", "best_peer", "speed_to_best_peer", "rounds", "notes", "device", "driver", "torch", "date"]
    with open(path + ".new", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", extrasaction="raise")
        writer.writeheader()
        writer.writerows(rows)
    os.replace(path + ".new", path)
    return order


def plot(path, rows, names):
    """TFLOP/s of every kernel, a group of bars for each shape. Only the best of our variants is drawn."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    series = {"ours": [row.get(f"{row['best_ours']}_tflops") for row in rows]}
    series |= {n: [row.get(f"{n}_tflops") for row in rows] for n in names if not n.startswith("ours")}
    width = 0.85 / len(series)
    figure, axes = pyplot.subplots(figsize=(max(7, 0.75 * len(rows) + 2), 5), layout="constrained")
    for i, (name, values) in enumerate(series.items()):
        places = [place + (i - (len(series) - 1) / 2) * width for place in range(len(rows))]
        axes.bar(places, [float(value or 0) for value in values], width, label=name)
    axes.set_xticks(range(len(rows)), [row["shape"] for row in rows], rotation=45, ha="right")
    axes.set_ylabel("TFLOP/s")
    facts = rows[-1]
    axes.set_title(f"Attention forward, bf16: {facts['device']}, torch {facts['torch']}, {facts['date']}", fontsize=10)
    axes.legend(ncols=len(series), fontsize=8)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def write(options, rows):
    """Files after each shape, so that whatever ends the run leaves what there is."""
    os.makedirs(options.out, exist_ok=True)
    return write_csv(os.path.join(options.out, "peers.csv"), rows)


def print_row(cells):
    numbers = [f"{c.removesuffix('_ms')} {v}" for c, v in cells.items() if c.endswith("_ms")]
    ratio = cells.get("speed_to_best_peer", "-")
    print(f"{cells['shape']:18} ratio {ratio:6} {', '.join(numbers)}", flush=True)
    if cells["notes"]:
        print(f"{'':18} {cells['notes']}", flush=True)


# ---------------------------------------------------------------- the run


def dry_run(options, shapes):
    for shape in shapes:
        print(shape.describe())
        variants = options.variant
        if "all" in variants:
            variants = cubin_variants(options, shape) if options.cubins and os.path.isdir(options.cubins) else ["base"]
        for variant in variants:
            print(f"  {shape.mask}-{shape.head_dim}{'' if variant == 'base' else '-' + variant}.cubin")
        print(f"  peers: {', '.join(peers_of(options, shape)) or 'none'}")


def run(options, shapes):
    torch = None
    if not options.skip_peers:
        import torch

        torch.cuda.init()
    command = [options.bench, "--serve", "--device", options.device, "--cubins", options.cubins]
    command += ["--shapes", options.shapes, "--limit", str(math.ceil(options.limit))]
    server = Server(command, options.limit + 10)
    facts = describe_machine(torch)
    bench = Bench(options, torch, server)
    rows, names = [], []
    try:
        device = server.start()
    except (OSError, Refused) as error:
        print(f"peers.py: can't start {options.bench}: {error}", file=sys.stderr)
        return 3
    facts["device"] = facts["device"] or device
    try:
        for shape in shapes:
            if bench.left() <= 0:
                print(f"the budget of {options.budget:.0f} s is spent: {shape.name} and what follows isn't timed")
                break
            rows.append(summarise(shape, bench.shape(shape), facts))
            print_row(rows[-1])
            names = write(options, rows)
    except KeyboardInterrupt:
        print("ended early")
    finally:
        server.close()
    if rows:
        try:
            plot(os.path.join(options.out, "peers.png"), rows, names)
        except Exception as error:  # the numbers are written; a picture isn't worth losing the exit status
            print(f"no plot: {first_line(error)}")
    return 0 if any(row["best_ours"] for row in rows) else 1


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cubins", default=os.path.join(ROOT, "build/cubins"), help="made by script/bench-cubins")
    parser.add_argument("--bench", default=os.path.join(ROOT, "build/bench/attention/bench_attention"))
    parser.add_argument("--shapes", default=os.path.join(ROOT, "bench/attention/shapes.csv"))
    parser.add_argument("--device", default="cuda:0", help="of our kernels; the peers use torch's current one")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="shapes whose name matches")
    parser.add_argument("--variant", action="append", help="of our kernels: a name, base (default), or all")
    parser.add_argument("--skip-flex", action="store_true")
    parser.add_argument("--skip-peers", action="store_true", help="our kernels alone; needs no torch")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--budget", type=float, default=540, metavar="SECONDS", help="stops and writes what there is")
    parser.add_argument("--limit", type=float, default=90, metavar="SECONDS", help="to prepare one kernel")
    parser.add_argument("--out", default=".", metavar="FOLDER")
    parser.add_argument("--dry-run", action="store_true", help="prints what would be timed")
    options = parser.parse_args()
    options.variant = options.variant or ["base"]
    return options


def main():
    options = read_options()
    shapes = read_shapes(options.shapes, options.only)
    signal.signal(signal.SIGALRM, on_alarm)
    signal.signal(signal.SIGTERM, on_end)
    if options.dry_run:
        dry_run(options, shapes)
        return 0
    return run(options, shapes)


if __name__ == "__main__":
    sys.exit(main())
