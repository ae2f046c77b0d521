"""Imported from Ray's copy in the workers."""


def work(rank):
    answer = rank * 7
    return answer  # @bp work
