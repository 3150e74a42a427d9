#!/usr/bin/env bash
# The tolerance of a row's log-sum-exp bites: schedules whose sums or logarithms are a little wrong are told so by
# `jfac run`, on data where the bound is widest and where it is tightest. usage: check_bites.sh JFAC
set -u
jfac="$1"
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
good=0 bad=0

# $1: what is wrong; $2: the edit of both schedules, "" for none; $3: what is expected, FAIL or pass
check() {
    local target lens found
    for target in sm100 sm90; do
        cp templates/*.jfa examples/dense.jfa "$work/"
        sed -i -E "$2" "$work/attention_$target.jfa"
        if [ -n "$2" ] && cmp -s "templates/attention_$target.jfa" "$work/attention_$target.jfa"; then
            bad=$((bad + 1))
            echo "$1: the edit changes nothing of attention_$target"
            continue
        fi
        for lens in 'q=5,5;k=3,4' 'q=3,130;k=600,260'; do
            found="$("$jfac" run "$work/dense.jfa" --device "sim:${target/sm/sm_}a" --lens "$lens" 2>&1 |
                grep -oE ' LSE .*(pass|FAIL)$' | grep -oE '(pass|FAIL)$')"
            if [ "$found" = "$3" ]; then
                good=$((good + 1))
            else
                bad=$((bad + 1))
                echo "$1, $target, $lens: ${found:-nothing}, not $3"
            fi
        done
    done
}

check "right" "" pass
check "log2 for log" 's/\* LN2 \+ log\(l\)/* LN2 + log2(l)/' FAIL
check "the maximum in the wrong unit" 's/ m \* LN2 \+ log/ m + log/' FAIL
check "ln 2 to four digits" 's/ m \* LN2 \+ log/ m * 0.6931 + log/' FAIL
check "off by 1e-3" 's/\+ log\(l\)/+ log(l) + 0.001/' FAIL
check "off by 1e-4" 's/\+ log\(l\)/+ log(l) - 0.0001/' FAIL
check "off by 2e-5" 's/\+ log\(l\)/+ log(l) + 0.00002/' FAIL
check "a sum without one of its terms" 's/rowsum\(e\)/rowsum(b.j + cols == 1 ? 0 : e)/' FAIL
check "exponentials off by 1e-4" 's/let e  ?= exp2\(z - base\)/let e = exp2(z - base) * 1.0001/' FAIL
echo "$good passed, $bad failed"
[ "$bad" = 0 ] && [ "$good" -gt 0 ]
