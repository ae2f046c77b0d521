"""Whether what ought to be equal on all ranks is: checks of tensors that find the ranks, the element and the step.

Works in any process with a process group; findings are told to the hub where an agent is there.
"""
