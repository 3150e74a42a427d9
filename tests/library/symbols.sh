#!/bin/sh
# symbols.sh HEADER LIBRARY NM [OPTION...]: the library defines the functions that the header marks with JFA_API as
# global symbols, each of them, and no other. The sanitizers' own symbols are left out.
header=$1
library=$2
shift 2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

sed -n 's/^JFA_API [^(]*[ *]\(jfa_[a-z0-9_]*\)(.*/\1/p' "$header" | sort > "$work/promised"
"$@" --extern-only --defined-only --format=posix "$library" |
    awk 'NF > 1 && $1 !~ /^__(asan|odr_asan|ubsan)/ { print $1 }' | sort > "$work/defined"
if [ "$(wc -l < "$work/promised")" -lt 20 ] || [ "$(wc -l < "$work/promised")" != "$(grep -c '^JFA_API' "$header")" ]; then
    echo "the functions of $header weren't all found"
    exit 1
fi
if ! diff "$work/promised" "$work/defined" > "$work/difference"; then
    echo "promised by $header (<) and defined by $library (>) differ:"
    cat "$work/difference"
    exit 1
fi
