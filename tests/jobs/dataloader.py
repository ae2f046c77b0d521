"""A DataLoader with forked workers, in a rank that the debugger has armed."""

import os

import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        value = index * index
        return torch.tensor(value)  # @bp getitem


def main():
    os.environ.setdefault("RANK", "0")
    loader = DataLoader(Squares(), batch_size=2, num_workers=2, multiprocessing_context="fork")
    total = 0
    for batch in loader:
        total += int(batch.sum())  # @bp batch
    print(f"RESULT total={total}")


if __name__ == "__main__":
    main()
