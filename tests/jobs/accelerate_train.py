"""accelerate launch --multi_gpu --num_processes 2 accelerate_train.py (the ranks themselves use the CPU)."""

import torch
from accelerate import Accelerator


def main():
    accelerator = Accelerator(cpu=True)
    total = accelerator.reduce(torch.tensor([float(accelerator.process_index + 1)]), reduction="sum")
    loss = float(total) + accelerator.process_index
    line = f"RESULT rank={accelerator.process_index} loss={loss}\n"
    print(line, end="", flush=True)  # @bp step
    accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
