"""One worker of each of two torchruns; that of rank 1 may take its time."""

import os


def main():
    rank = int(os.environ["RANK"])
    result = rank + 1
    print(f"RESULT rank={rank} {result}\n", end="", flush=True)  # @bp result


if __name__ == "__main__":
    main()
