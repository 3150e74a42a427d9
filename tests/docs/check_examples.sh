#!/usr/bin/env bash
# Every ```jfa block of the documents is the language: complete kernels compile, fragments parse in the frame that they
# belong to. usage: check_examples.sh JFAC DOCUMENT...
set -u
shopt -s nullglob
jfac="$1"
shift
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
good=0 bad=0
for document in "$@"; do
    awk -v out="$work/block" '
        /^```jfa$/ { n++; file = sprintf("%s%02d.jfa", out, n); inside = 1; next }
        /^```$/ { inside = 0; close(file) }
        inside && !/^ *\.\.\.$/ { print > file }' "$document"
    for block in "$work"/block*.jfa; do
        if grep -q '^kernel ' "$block"; then # a whole file: everything is checked
            "$jfac" check "$block" > "$work/log" 2>&1
        else
            case "$(grep -oE '[a-z]+' "$block" | head -n 1)" in
            family | schedule | use) cp "$block" "$work/framed.jfa" ;;
            *) { echo 'schedule s of f for t {'; cat "$block"; echo '}'; } > "$work/framed.jfa" ;;
            esac
            "$jfac" build "$work/framed.jfa" --emit ast -o "$work/ast" > "$work/log" 2>&1
        fi
        if [ $? = 0 ]; then
            good=$((good + 1))
        else
            bad=$((bad + 1))
            echo "$document, block $(basename "$block" .jfa):"
            cat "$work/log"
        fi
    done
    rm -f "$work"/block*.jfa
done
echo "$good passed, $bad failed"
[ "$bad" = 0 ] && [ "$good" -gt 0 ]
