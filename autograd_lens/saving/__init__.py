"""What one node saved for its backward, in which memory that lies, and whose memory it is.

======================  ===========================================================
``record``              the data: a saved tensor, a storage
``saved``               reads what a node saved, without touching it
``storages``            numbers storages, and measures them
``reachable``           the memory that a Python object keeps alive
``owners``              whose memory a storage is
``recorder``            a context around a forward, for nodes that show nothing
======================  ===========================================================
"""
