#!/usr/bin/env bash
# matrix.sh JFAC [DEVICE]: every layout, dtype and head_dim over lengths at the edges of blocks, against float64, on DEVICE
# (default cuda:0; sim:sm_90a does as well, slowly). Prints a line a case and, last, how many failed, which is its status.
set -u
jfac=$1
device=${2:-cuda:0}
target=${TARGET:-sm_90a}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
failed=0
cases=0

# run_case KERNEL ARGUMENT...: one run with a limit, since a kernel that hangs must not take the rest with it.
run_case() {
    local kernel=$1
    shift
    cases=$((cases + 1))
    local output status
    output=$(timeout "${LIMIT:-120}" "$jfac" run "$root/$kernel" --target "$target" --device "$device" "$@" 2>&1)
    status=$?
    if [ $status -eq 0 ]; then
        echo "ok    $kernel $*"
    else
        failed=$((failed + 1))
        echo "FAIL  $kernel $* (status $status)"
        echo "$output" | tail -n 12 | sed 's/^/      /'
    fi
}

edges=0,1,2,63,64,65,127,128,129,191,192,193,255,256,257,300,511,513
for kernel in examples/dense.jfa examples/causal.jfa; do
    for dtype in bf16 f16; do
        for head_dim in 64 128; do
            form=(-D "dtype=$dtype" -D "head_dim=$head_dim")
            run_case $kernel "${form[@]}" --lens $edges --heads 2 --kv-heads 2 --seeds 2
            run_case $kernel "${form[@]}" --lens $edges --heads 4 --kv-heads 2
            run_case $kernel "${form[@]}" --lens $edges --heads 3 --kv-heads 1
            run_case $kernel "${form[@]}" --lens "q=1,0,128,129,64,300;k=300,77,0,1,128,129" --heads 4 --kv-heads 2
            run_case $kernel "${form[@]}" --broadcast Q --lens "q=130,130,130,130;k=0,300,77,128" --heads 2 --kv-heads 1
            run_case $kernel "${form[@]}" --batch 3 --len 257 --heads 2 --kv-heads 2
            run_case $kernel "${form[@]}" --batch 2 --len 256 --heads 2 --kv-heads 2 --no-poison
        done
    done
done
echo "$cases cases on $device, $failed failed"
[ $failed -eq 0 ]
