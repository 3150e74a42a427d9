#!/usr/bin/env bash
# check_order.sh JFAC: what the compiled loop of examples/dense.jfa for sm_90a must keep of its schedule, read in its PTX.
# Arithmetic that stands between two products stays there, where it runs beside the first of them; and the scale of scores,
# which is declared positive, is no multiplication a score.
set -u
jfac=$1
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

ptx() { "$jfac" build "$1" --target sm_90a --emit ptx -o - "${@:2}"; }
# Multiplications from each commit of a product to the next, one number a line.
between() { awk '/wgmma.commit_group/ { if (seen) print count; seen = 1; count = 0 } /mul.*f32/ { count++ }'; }

# O is 64 x 128 floats on 128 threads: a thread has 64 of them, for D = 64 half of it.
for head_dim in 128 64; do
    expected=$((head_dim / 2))
    steps=$(ptx "$root/examples/dense.jfa" -D "head_dim=$head_dim" | between | awk -v n=$expected '$1 == n' | wc -l)
    # Two copies of the step: full blocks and partial ones.
    [ "$steps" = 2 ] || { echo "head_dim $head_dim: $steps steps rescale O between their products, not 2"; bad=1; }
done

sed 's/^}/  param tau : f32 = 1;\n  score (s) => s * tau;\n}/' "$root/examples/dense.jfa" > "$work/unknown.jfa"
sed 's/f32 = 1/f32 > 0 = 1/' "$work/unknown.jfa" > "$work/positive.jfa"
unknown=$(ptx "$work/unknown.jfa" | grep -c 'mul.*f32')
positive=$(ptx "$work/positive.jfa" | grep -c 'mul.*f32')
default=$(ptx "$root/examples/dense.jfa" | grep -c 'mul.*f32')
# 64 scores a thread in each of four copies: first and later blocks, full and partial.
[ $((unknown - positive)) -ge $((4 * 60)) ] || { echo "$unknown multiplications, with a positive factor $positive"; bad=1; }
[ "$default" = "$positive" ] || { echo "$default multiplications with scale, $positive with a positive factor"; bad=1; }
[ $bad = 0 ] && echo "the order of the schedule is kept"
exit $bad
