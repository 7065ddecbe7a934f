"""Every figure of the model board, computed again from a version of the data set and nothing else.

    python tests/leaderboard/recount.py FOLDER TARGET SIZE

FOLDER holds card.json, scores.jsonl and runs.jsonl of one version. Written from the data card, not from the
portal's code: this file imports only the standard library, so that anybody can check the boards with it.
"""

import json
import math
import random
import sys
from itertools import combinations
from pathlib import Path


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def band(values):
    """Percentile bootstrap of the mean over problems, as the data card says."""
    draw = random.Random(20260601)
    count = len(values)
    means = []
    for _ in range(300):
        picked = draw.choices(range(count), k=count)
        means.append(sum(values[i] for i in picked) / count)
    means.sort()
    mean = sum(values) / count
    return min(means[math.floor(0.025 * 299)], mean), max(means[math.ceil(0.975 * 299)], mean)


def chance(good, n, k):
    """Share of all draws of k samples in which one at least is good, counted where that is cheap."""
    if n <= 6:
        draws = list(combinations([True] * good + [False] * (n - good), k))
        return sum(any(draw) for draw in draws) / len(draws)
    miss = 1.0
    for i in range(k):
        miss *= max(n - good - i, 0) / (n - i)
    return 1.0 - miss


def standing(runs, target, size):
    """The newest complete verified run of each model, harness and prompt variant."""
    newest = {}
    for run in runs:
        if (run["target"], run["size"]) != (target, size) or run["entrant_kind"] != "model":
            continue
        if not run["verified"] or not run["complete"]:
            continue
        key = (run["entrant_slug"], run["harness"], run["prompt_variant"])
        if key not in newest or (run["date"], run["run"]) > (newest[key]["date"], newest[key]["run"]):
            newest[key] = run
    return list(newest.values())


def figures(run, scores, track):
    """The figures of one run; of each sample the last step counts, of one step the newest score."""
    last = {}
    for row in scores:
        if row["problem"] not in track or not row["last"]:
            continue
        key = (row["problem"], row["sample"])
        if key not in last or row["score_id"] > last[key]["score_id"]:
            last[key] = row
    n = max([run["samples"]] + [1 + sample for _, sample in last])
    per_problem = {slug: [] for slug in track}
    timed = {slug: [] for slug in track}
    for (slug, _), row in last.items():
        speed = row["speedup"] if row["ranked"] and not row["provisional"] else None
        if speed is not None and abs(speed - 1.0) <= row["noise_floor"]:
            speed = min(speed, 1.0)  # a tie is never faster
        sure = not {"below_resolution", "noisy"} & set(
            row["flags"]
        )  # else at most a tie: after what was measured
        per_problem[slug].append((row["ranked"], speed or 0.0))
        timed[slug].append((sure, speed))
    found = {"run": run["run"], "model": run["entrant"], "n": n, "track": len(track), "date": run["date"]}
    for name, faster in (("pass", 0.0), ("fast", 1.0)):
        good = [sum(ok and (not faster or s > faster) for ok, s in per_problem[slug]) for slug in track]
        for k in (1, 3, 5, 10):
            if k <= n:
                found[f"{name}_{k}"] = round(sum(chance(g, n, k) for g in good) / len(track), 12)
        found[f"{name}_band"] = band([g / n for g in good])
        found["solved" if name == "pass" else "faster"] = sum(g > 0 for g in good)
    best = [max((pair for pair in rows if pair[1]), default=None) for rows in timed.values()]
    logs = [math.log(pair[1]) for pair in best if pair]
    found["mean_solved"] = math.exp(sum(logs) / len(logs)) if logs else None
    found["mean_whole"] = math.exp(sum(logs) / len(track))
    return found


def board(folder, target, size):
    """The model board, best first; equal figures share a place."""
    folder = Path(folder)
    track = json.loads((folder / "card.json").read_text(encoding="utf-8"))["track"]
    scores = {}
    for row in lines(folder / "scores.jsonl"):
        if (row["target"], row["size"]) == (target, size):
            scores.setdefault(row["run"], []).append(row)
    runs = standing(lines(folder / "runs.jsonl"), target, size)
    rows = [figures(run, scores.get(run["run"], []), track) for run in runs]
    for row in rows:
        row["place"] = 1 + sum(other["fast_1"] > row["fast_1"] for other in rows)
    return sorted(rows, key=lambda row: (-row["fast_1"], -row["pass_1"], row["model"].lower()))


def printed(row):
    """The figures as the board prints them, in the order of its columns."""

    def share(value):
        return "< 0.1 %" if 0 < value < 0.0005 else f"{100 * value:.1f} %"

    def speed(value):
        if value is None:
            return "–"
        return f"{value:.0f}×" if value >= 100 else f"{value:.3g}×" if value >= 10 else f"{value:.2f}×"

    k = max(k for k in (1, 3, 5, 10) if f"pass_{k}" in row)
    words = [str(row["place"]), row["model"], share(row["fast_1"])]
    words += [share(value) for value in row["fast_band"]]
    words += [share(row["pass_1"])] + [share(value) for value in row["pass_band"]]
    words += [share(row[f"pass_{k}"]), share(row[f"fast_{k}"])] if k > 1 else []
    words += [speed(row["mean_solved"]), speed(row["mean_whole"])]
    return [*words, str(row["solved"]), f"of {row['track']}; {row['faster']} faster"]


if __name__ == "__main__":
    for line in board(*sys.argv[1:4]):
        sys.stdout.write("  ".join(printed(line)) + "\n")
