"""Live memory by role through a training step: the verb ``record_memory`` and its result.

======================  ===========================================================
``recording``           the verb, and the result
``recorder``            runs the function under the profiler, with snapshots of roles
``events``              what the profiler saw, in order
``cuda``                sizes as they were asked for on CUDA
``blocks``              pieces of memory: when they came and went, and their role
``roles``               whose memory it is, from snapshots
``reach``               what a function and its arguments lead to
======================  ===========================================================
"""
