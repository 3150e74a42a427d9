#!/usr/bin/env bash
# Broken specs, each with what its author is told and a mend: NAME.jfa is refused with NAME.expected on standard error
# and leaves no file behind; NAME.jfa edited by NAME.sed is right. Runs where the paths in the messages start, the
# repository's root. usage: check_broken.sh JFAC [NAME...]; with ACCEPT=1 what is said now becomes what is expected:
# read it as the author of the spec first.
set -u
jfac="$1"
shift
folder="tests/specs"
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
good=0 bad=0
includes=(-I "$folder/families" -I templates)

check_one() { # prints what is wrong; nothing: all is well
    local spec="$1" broken="$folder/broken/$1.jfa" expected="$folder/broken/$1.expected" status
    "$jfac" check "$broken" "${includes[@]}" > "$work/out" 2> "$work/err"
    status=$?
    sed -i '/^note: searched: \//d' "$work/err" # where jfac is installed
    [ "$status" = 1 ] || echo "exit status $status, not 1"
    [ -s "$work/out" ] && echo "standard output isn't empty"
    [ "${ACCEPT-}" = 1 ] && cp "$work/err" "$expected"
    diff -u "$expected" "$work/err"
    "$jfac" build "$broken" "${includes[@]}" -o "$work/cubin" > /dev/null 2> "$work/built"
    status=$?
    [ "$status" = 1 ] || echo "the build's exit status is $status, not 1"
    sed -i '/^note: searched: \//d' "$work/built"
    cmp "$work/err" "$work/built"
    [ -e "$work/cubin" ] && echo "the build left a file"
    rm -f "$work/cubin"
    sed -f "$folder/broken/$spec.sed" "$broken" > "$work/mended.jfa" || echo "the mend is no sed script"
    cmp -s "$broken" "$work/mended.jfa" && echo "the mend changes nothing"
    "$jfac" check "$work/mended.jfa" "${includes[@]}" > /dev/null 2> "$work/err" || echo "the mended form is refused"
    cat "$work/err"
}

if [ $# -gt 0 ]; then
    specs=("$@")
else
    mapfile -t specs < <(find "$folder/broken" -type f | sed -E 's|.*/||; s|\.[a-z]+$||' | LC_ALL=C sort -u)
fi
for spec in "${specs[@]}"; do
    check_one "$spec" > "$work/log" 2>&1
    if [ -s "$work/log" ]; then
        bad=$((bad + 1))
        echo "$folder/broken/$spec:"
        cat "$work/log"
    else
        good=$((good + 1))
    fi
done
echo "$good passed, $bad failed"
[ "$bad" = 0 ] && [ "$good" -gt 0 ]
