"""A bounded dual simplex in which everything is boxed; compiled with Numba.

The problem is: maximise c.x over lower <= x <= upper with row_lower <= A.x <= row_upper, all ends finite.  Then *every* basis is dual feasible once each nonbasic variable sits at the
end that its reduced cost asks for, so a solve may start from the basis of any earlier problem with the same matrix, whatever happened to ends and objective since.

A variable is *structural* (one of x) or *logical* (the value of a row).  A basis has as many tight rows, whose logicals are nonbasic, as basic structurals.  With multipliers y on the tight
rows the reduced costs are d = c - y.A.  One iteration (`solving.solve`) takes the most violated variable out of the basis (`point`), and walks along the convex, piecewise linear dual
function past all breakpoints where its slope stays negative: the long step, or bound flipping, ratio test (`ratio`).  Then the basis changes (`exchange`).  Costs are perturbed a little,
and more where that makes no progress, because ties make the dual simplex cycle (`costs`).

Whatever the iterations did, *any* y proves a bound (`proof`).  The answer's validity rests on that function alone, its tightness on the rest.
"""
