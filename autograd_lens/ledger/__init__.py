"""What a graph keeps alive for its backward, summed: the verb ``saved_tensors`` and its results."""
