"""Two actor classes, each with ranks 0 and 1; no RANK in any environment."""

import ray


@ray.remote(num_cpus=0)
class Actor:
    def __init__(self, rank):
        self.rank = rank

    def rollout(self):
        reward = 100 + self.rank
        return reward  # @bp actor


@ray.remote(num_cpus=0)
class Critic:
    def __init__(self, rank):
        self.rank = rank

    def value(self):
        value = 200 + self.rank
        return value  # @bp critic


def main():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    actors = [Actor.remote(rank) for rank in range(2)]
    critics = [Critic.remote(rank) for rank in range(2)]
    print("RESULT actor", ray.get([a.rollout.remote() for a in actors]))
    print("RESULT critic", ray.get([c.value.remote() for c in critics]))


if __name__ == "__main__":
    main()
