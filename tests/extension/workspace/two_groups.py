"""Two groups of Ray actors, each with ranks 0 and 1: actors that act, and critics that judge them."""

import ray


@ray.remote(num_cpus=0)
class Actor:
    def __init__(self, rank):
        self.rank = rank

    def act(self, turn):
        action = 100 * turn + self.rank
        return action  # @bp act


@ray.remote(num_cpus=0)
class Critic:
    def __init__(self, rank):
        self.rank = rank

    def judge(self, action):
        value = -action
        return value  # @bp judge


def main():
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    actors = [Actor.remote(rank) for rank in range(2)]
    critics = [Critic.remote(rank) for rank in range(2)]
    for turn in range(3):
        actions = ray.get([actor.act.remote(turn) for actor in actors])
        values = ray.get([critic.judge.remote(action) for critic, action in zip(critics, actions, strict=True)])
        print(f"turn {turn}: actions {actions}, values {values}")  # @bp turn


if __name__ == "__main__":
    main()
