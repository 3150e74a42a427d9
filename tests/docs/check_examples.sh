#!/usr/bin/env bash
# Every ```jfa block of the documents is the language: all are checked as a kernel is. A block with a kernel is a whole
# file. Any other is a fragment, told by the number of its heading, and belongs into a frame, frames/*.jfa: a line
# "//= 3.4" there stands for the fragment of section 3.4 up to its first "...", the next such line for what follows up
# to the second, and so on. usage: check_examples.sh JFAC DOCUMENT...
set -u
shopt -s nullglob
jfac="$1"
shift
frames="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/frames"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
good=0 bad=0

fail() { # $1: where; the log says why
    bad=$((bad + 1))
    echo "$1:"
    cat "$work/log"
}

check() { # $1: where; $2: the file, which may say "// target: NAME"
    local target
    target="$(sed -n 's,^// target: ,,p' "$2")"
    if "$jfac" check "$2" --target "${target:-sm_100a}" > "$work/log" 2>&1 && ! grep -q '^[^ ].*warning: ' "$work/log"; then
        good=$((good + 1))
    else
        fail "$1"
    fi
}

# Fragments go to $work/fragment-NUMBER.1, .2, ... (their parts between "..."), whole files to $work/whole-N.jfa.
split() {
    awk -v work="$work" '
        function flush(    name, part, i) {
            if (whole) {
                name = sprintf("%s/whole-%02d.jfa", work, ++wholes)
                for (i = 1; i <= count; i++) print lines[i] > name
            } else {
                part = 1
                name = work "/fragment-" section "."
                if (section in seen) { print "section " section " has two fragments" > (work "/twice"); return }
                seen[section] = 1
                printf "" > (name part)
                for (i = 1; i <= count; i++)
                    if (lines[i] ~ /^ *\.\.\.$/) printf "" > (name (++part))
                    else print lines[i] > (name part)
            }
        }
        /^#+ / && !inside { section = $2; sub(/\.$/, "", section) }
        /^```jfa$/ { inside = 1; count = 0; whole = 0; next }
        /^```$/ { if (inside) flush(); inside = 0 }
        inside { lines[++count] = $0; whole = whole || /^kernel / }' "$1"
}

assemble() { # $1: a frame. Marks the parts that it uses.
    local line section parts=""
    while IFS= read -r line; do
        case "$line" in
        "//= "*)
            section="${line#//= }"
            parts="$parts $section"
            section="$section.$(grep -oE '[^ ]+' <<< "$parts" | grep -cxF "$section")"
            if ! cat "$work/fragment-$section"; then return 1; fi
            : > "$work/used-$section"
            ;;
        *) printf '%s\n' "$line" ;;
        esac
    done < "$1"
}

for document in "$@"; do
    rm -f "$work"/*
    split "$document"
    for whole in "$work"/whole-*.jfa; do check "$document, $(basename "$whole" .jfa)" "$whole"; done
    fragments=("$work"/fragment-*)
    if [ -e "$work/twice" ]; then
        mv "$work/twice" "$work/log"
        fail "$document"
    fi
    [ "${#fragments[@]}" -gt 0 ] || continue
    for frame in "$frames"/*.jfa; do
        if assemble "$frame" > "$work/framed.jfa" 2> "$work/log"; then
            check "$document in $(basename "$frame")" "$work/framed.jfa"
        else
            fail "$document in $(basename "$frame")"
        fi
    done
    for fragment in "${fragments[@]}"; do
        [ -e "$work/used-${fragment#"$work"/fragment-}" ] && continue
        echo "no frame holds part ${fragment##*.} of the fragment in section $(sed 's/.*fragment-//; s/\.[0-9]*$//' <<< "$fragment")" > "$work/log"
        fail "$document"
    done
done
echo "$good passed, $bad failed"
[ "$bad" = 0 ] && [ "$good" -gt 0 ]
