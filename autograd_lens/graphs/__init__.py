"""One reading of a graph, and the graph as a result that shows itself.

======================  ===========================================================
``record``              the data: nodes, edges, hooks, leaves, the whole reading
``reading``             from live nodes to the record: the one place that reads them
``roots``               the nodes behind the given outputs
``order``               the walk, in the order of the engine
``links``               edges as numbers
``deallocation``        guards that let a deep graph be freed
``kinds``               what kind of node a node is
``describe``            one node as data
``formulas``            derivative formulas of the installed PyTorch
``mathematics``         the same in mathematics, for the operations on the book's pages
``modules``             a guess which module made which node
``grad_graph``          the verb ``graph`` and its result
======================  ===========================================================
"""
