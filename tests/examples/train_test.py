#!/usr/bin/python3
"""Trains for one epoch on 1, 2 and 4 ranks: the losses agree to 1e-4, and the classifier is right on most of the test images.

usage: train_test.py TUTTI_RUN TRAIN    exits with 77 where the data is not installed"""
import os
import re
import subprocess
import sys

DATA = "/usr/share/datasets/fashion-mnist"
MOST_DIFFERENCE = 1e-4
LEAST_ACCURACY = 80.0


def train(tutti_run, program, ranks):
    """The losses after each epoch, and the accuracy in percent."""
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")}
    done = subprocess.run([tutti_run, "-n", str(ranks), program, "--epochs", "1", "--data", DATA], env=environment,
                          stdout=subprocess.PIPE, text=True, timeout=240)
    print(f"{ranks} ranks, exit status {done.returncode}\n{done.stdout}")
    if done.returncode != 0:
        sys.exit(1)
    losses = [float(text) for text in re.findall(r"^epoch \d+ loss ([\d.]+)$", done.stdout, re.M)]
    accuracies = re.findall(r"^test accuracy ([\d.]+) %$", done.stdout, re.M)
    if len(losses) != 1 or len(accuracies) != 1:
        sys.exit(f"{ranks} ranks: {len(losses)} losses and {len(accuracies)} accuracies, must be one each, from rank 0")
    return losses, float(accuracies[0])


def main(tutti_run, program):
    if not os.path.exists(f"{DATA}/train-images-idx3-ubyte.gz"):
        print(f"no {DATA}: install dataset-fashion-mnist")
        return 77
    alone, accuracy = train(tutti_run, program, 1)
    faults = []
    if accuracy < LEAST_ACCURACY:
        faults.append(f"accuracy is {accuracy} %, must be at least {LEAST_ACCURACY} %")
    for ranks in (2, 4):
        losses, _ = train(tutti_run, program, ranks)
        faults += [f"{ranks} ranks: loss of epoch {i + 1} is {b}, on one rank {a}"
                   for i, (a, b) in enumerate(zip(alone, losses)) if abs(a - b) > MOST_DIFFERENCE * a]
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
