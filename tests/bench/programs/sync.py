"""Gloo ranks that compare their tensors: `torchrun … sync.py KEY OUTPUT`; rank 0 writes its samples as JSON."""

import hashlib
import json
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

from rankscope import verify_distributed_tensors
from rankscope.agent import sync_check

ROUNDS = 7
MEGABYTE = 1 << 18  # elements of float32
STEPS = 100


def timed(work):
    """Seconds until the last rank is done, begun together."""
    dist.barrier()
    began = time.perf_counter()
    result = work()
    dist.barrier()
    return time.perf_counter() - began, result


def parameters(megabytes, count):
    torch.manual_seed(1)
    return {f"layer.{at}": torch.randn(megabytes * MEGABYTE // count) for at in range(count)}


def by_sha1(tensors):
    """As Megatron-LM's check of data-parallel replicas: a SHA-1 of each, gathered."""
    digests = b"".join(hashlib.sha1(tensor.view(torch.uint8).numpy()).digest() for tensor in tensors.values())
    mine = torch.frombuffer(bytearray(digests), dtype=torch.uint8)
    everybody = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(everybody, mine)
    return all(torch.equal(mine, other) for other in everybody)


def by_all_gather(tensors):
    """Every tensor of every rank, everywhere."""
    is_equal = True
    for tensor in tensors.values():
        everybody = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
        dist.all_gather(everybody, tensor)
        is_equal &= all(torch.allclose(tensor, other, rtol=0.0, atol=1e-6) for other in everybody)
    return is_equal


def times_faster(peer):
    tensors = parameters(64, 16)
    ratios = []
    for _ in range(ROUNDS + 1):
        theirs, is_equal = timed(lambda: peer(tensors))
        ours, report = timed(lambda: verify_distributed_tensors(tensors))
        assert is_equal and report.ok
        ratios.append(theirs / ours)
    return ratios[1:]  # the first one makes connections


def locate():
    """Milliseconds that one bad element in 100 MB costs beyond the healthy check."""
    tensors = parameters(100, 10)
    samples = []
    for _ in range(ROUNDS + 1):
        healthy, report = timed(lambda: verify_distributed_tensors(tensors))
        assert report.ok
        if dist.get_rank() == 2:
            tensors["layer.7"][54321] += 1.0
        bad, report = timed(lambda: verify_distributed_tensors(tensors))
        assert report.differences[0].first_index == (54321,)
        if dist.get_rank() == 2:
            tensors["layer.7"][54321] -= 1.0
        tensors["layer.7"][54321] = 0.0
        samples.append((bad - healthy) * 1000)
    return samples[1:]


def overhead():
    """Steps with the check of launch.json's `syncCheck` every 100 over steps without, blocks in turn.

    The gradients are set, as a reducer would have, since those of two processes may differ in their last bit.
    """
    torch.manual_seed(1)
    model = torch.nn.Sequential(*(torch.nn.Linear(1000, 1000) for _ in range(10)))
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    data = torch.randn(4, 1000)
    gradients = [torch.randn_like(parameter) for parameter in model.parameters()]
    settings = {"isOn": True, "interval": STEPS}
    sync_check.install(settings)

    def step():
        optimizer.zero_grad()
        model(data).square().mean().backward()
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()

    def block(is_on):
        sync_check._settings = settings if is_on else {}
        took, _ = timed(lambda: [step() for _ in range(STEPS)])
        return took

    block(True)
    samples = []
    for turn in range(2 * ROUNDS):
        order = (True, False) if turn % 2 else (False, True)
        took = {is_on: block(is_on) for is_on in order}
        samples.append(took[True] / took[False])
        if dist.get_rank() == 0 and turn == 0:
            print(f"{took[False] / STEPS * 1000:.1f} ms a step", flush=True)
    [watched] = sync_check._checks._watched
    assert len(watched._checker.last_good) > 1 and watched._checker.first_bad is None
    return samples


KEYS = {
    "vs_sha1": lambda: times_faster(by_sha1),
    "vs_allgather": lambda: times_faster(by_all_gather),
    "locate_ms": locate,
    "step_overhead_100": overhead,
}


def main():
    key, output = sys.argv[1:3]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    samples = KEYS[key]()
    if dist.get_rank() == 0:
        Path(output).write_text(json.dumps(samples))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
