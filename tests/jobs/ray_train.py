"""Ray Train: the workers' ranks are set after their processes have started."""

import tempfile

import ray
import ray.train
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer


def train_loop(config):
    import torch
    import torch.distributed as dist

    rank = ray.train.get_context().get_world_rank()
    total = torch.tensor([float(rank + 1)])
    dist.all_reduce(total)
    loss = float(total) / config["steps"]
    with open(f"{config['folder']}/{rank}", "w") as file:
        file.write(str(loss))  # @bp loss
    ray.train.report({"loss": loss})


def main():
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        trainer = TorchTrainer(
            train_loop,
            train_loop_config={"steps": 2, "folder": folder},
            scaling_config=ScalingConfig(num_workers=2, use_gpu=False),
            run_config=RunConfig(storage_path=folder),
        )
        result = trainer.fit()
        losses = [open(f"{folder}/{rank}").read() for rank in range(2)]
    print(f"RESULT error={result.error} losses={losses}")


if __name__ == "__main__":
    main()
