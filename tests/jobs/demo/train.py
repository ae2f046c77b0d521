"""A small actor/critic training loop on Ray: four ranks, gloo all-reduce, a torch model on the CPU.

    python train.py

Each rank plays episodes of a little balancing game with its own seed, computes the actor's and the critic's
gradients, averages them over all ranks and takes one step. Nothing in this file knows of RankScope.
"""

import socket

import ray

WORLD_SIZE = 4
ITERATIONS = 20


def build_model():
    import torch
    from torch import nn

    class ActorCritic(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(3, 32), nn.Tanh())
            self.actor = nn.Linear(32, 2)
            self.critic = nn.Linear(32, 1)

        def forward(self, state):
            hidden = self.body(state)
            return torch.log_softmax(self.actor(hidden), dim=-1), self.critic(hidden).squeeze(-1)

    torch.manual_seed(0)  # the same first weights on every rank
    return ActorCritic()


class Balance:
    """A pole that falls to one side: push it left or right, stay upright as long as you can."""

    LONGEST = 40

    def __init__(self, generator):
        import torch

        self.angle, self.speed = (0.1 * torch.randn(2, generator=generator)).tolist()
        self.steps = 0

    @property
    def state(self):
        return [self.angle, self.speed, 1.0 - self.steps / self.LONGEST]

    def push(self, action):
        self.speed += 0.08 * self.angle + (0.05 if action else -0.05)
        self.angle += self.speed
        self.steps += 1
        return abs(self.angle) > 1.0 or self.steps == self.LONGEST


@ray.remote(num_cpus=0)
class Worker:
    def __init__(self, rank, port):
        import torch
        import torch.distributed as dist

        torch.set_num_threads(1)
        self.rank = rank
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=WORLD_SIZE)
        self.model = build_model()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.03)
        self.generator = torch.Generator().manual_seed(100 + rank)

    def rollout(self, episodes=8):
        """Play; returns states, actions and the discounted returns."""
        import torch

        states, actions, returns = [], [], []
        for _ in range(episodes):
            game, rewards, is_over = Balance(self.generator), 0, False
            while not is_over:
                with torch.no_grad():
                    log_probs, _ = self.model(torch.tensor(game.state))
                action = int(torch.multinomial(log_probs.exp(), 1, generator=self.generator))
                states.append(game.state)
                actions.append(action)
                is_over = game.push(action)
                rewards += 1
            total = 0.0
            discounted = []
            for _ in range(rewards):
                total = 1.0 + 0.95 * total
                discounted.append(total)
            returns.extend(reversed(discounted))
        return torch.tensor(states), torch.tensor(actions), torch.tensor(returns) / 10

    def update(self, iteration):
        """One step of training; returns the mean length of an episode over all ranks, and the loss."""
        import torch
        import torch.distributed as dist

        states, actions, returns = self.rollout()
        log_probs, values = self.model(states)
        advantage = returns - values
        actor_loss = -(log_probs.gather(1, actions[:, None]).squeeze(1) * advantage.detach()).mean()
        critic_loss = advantage.pow(2).mean()
        loss = actor_loss + 0.5 * critic_loss
        self.optimizer.zero_grad()  # @bp loss
        loss.backward()
        for parameter in self.model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= WORLD_SIZE
        self.optimizer.step()
        report = torch.tensor([len(states) / 8, float(loss.detach())])
        dist.all_reduce(report)
        report /= WORLD_SIZE
        return report.tolist()  # @bp report

    def checksum(self):
        """The sum of all weights: equal on every rank, and from run to run."""
        return sum(float(parameter.double().sum()) for parameter in self.model.parameters())


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    ray.init(num_cpus=WORLD_SIZE, include_dashboard=False, log_to_driver=False)
    port = free_port()
    workers = [Worker.remote(rank, port) for rank in range(WORLD_SIZE)]
    for iteration in range(ITERATIONS):
        length, loss = ray.get([worker.update.remote(iteration) for worker in workers])[0]
        print(f"RESULT iteration={iteration} episode_length={length:.3f} loss={loss:.6f}", flush=True)
    checksums = ray.get([worker.checksum.remote() for worker in workers])
    print(f"RESULT weights={checksums[0]:.9f} equal_on_all_ranks={len(set(checksums)) == 1}")


if __name__ == "__main__":
    main()
