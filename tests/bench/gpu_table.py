#!/usr/bin/env python3
"""Prints the CSV of gpu.sh as one table: microseconds of each peer, and the target, per shape."""
import csv
import math
import sys

TINY = {"single": 4.5, "small_ragged": 4.5}  # Targets in microseconds.


def target(shape, floor):
    if shape in TINY:
        return TINY[shape]
    return 1.1 * floor + (0 if shape == "page_images" else 3)


def mean_ratio(rows, ratio):
    logs = [math.log(ratio(row)) for row in rows]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def main():
    times, floors = {}, {}
    for row in csv.reader(line for line in open(sys.argv[1]) if not line.startswith("#")):
        if row[0] == "shape":
            continue
        times.setdefault(row[0], {})[row[6]] = float(row[7])
        floors[row[0]] = float(row[5])
    peers = sorted({peer for row in times.values() for peer in row})
    print("| shape | floor | target | " + " | ".join(peers) + " |")
    print("| --- " * (3 + len(peers)) + "|")
    for shape in sorted(times):
        cells = [f"{times[shape][p]:.2f}" if p in times[shape] else "" for p in peers]
        print(f"| {shape} | {floors[shape]:.2f} | {target(shape, floors[shape]):.2f} | "
              + " | ".join(cells) + " |")
    ours = [row for row in times.values() if "maxsimd" in row]
    for name in ("maxsimd", "maxsimd_serial"):
        against = [row for row in ours if "reference" in row and name in row]
        others = lambda row: min(us for peer, us in row.items() if not peer.startswith("maxsimd"))
        print(f"{name}: geometric mean of reference / ours "
              f"{mean_ratio(against, lambda row: row['reference'] / row[name]):.2f}, of the best peer / "
              f"ours {mean_ratio([r for r in ours if name in r], lambda row: others(row) / row[name]):.2f}")


if __name__ == "__main__":
    main()
