"""Any matroid, with few independence tests: ``engine="hot-cold"``.

At an *epoch* all arms are put in order and the base is found by greedy. Until the next epoch lam stays, so that only
touched arms change weight: they are *hot*. The others are *cold*, with frozen weights, and are needed only as far as
their base:

- (docs/theory.md, A) B(hot + cold) = B(hot + B(cold)), because an arm of cold outside B(cold) is the lightest of a
  circuit in cold.
- (docs/theory.md, B) Let L1 = B(cold), L2 = B(cold - L1), and so on, `reserve` + 1 *layers*. When arms of cold become
  hot or leave, take the first layer m that is still whole. It is the base of all that lies below the layers before it,
  with or without what is missing there; so by (A) the base lies in hot + what is left of L1 .. L(m-1) + Lm.

Each round is greedy over that small set, whose size depends on the rank and the reserve, not on K. When no layer is
whole, too many arms are hot, or lam changes, a new epoch begins. A layer is made only when those before it are no
longer whole, from the arms that are still cold; so a clock that moves at every round costs one greedy a round, as
re-solving does. The same is done for some rounds when the layers of an epoch turned out to cost more than they saved:
few arms, or most of the base changing at every round. Between two epochs at the same lam the arms stay in order
(docs/theory.md, G), so that beginning one does not cost a pass over all of them.

=================  =================================================================================================
places             where every arm is: hot, in a layer, cold below all layers, or gone
cold_order         the arms in order as the epoch began, listed as far as someone looked
layers             the layers: the next one, and the arms among which the base lies
worth              whether layers pay, or a full greedy at every round is cheaper
counted_greedy     greedy whose independence tests are counted
remembered_oracle  greedy that remembers what a user's oracle said
hot_cold           the engine
=================  =================================================================================================
"""
