#!/bin/sh
# symbols.sh NM ARCHIVE...: fails and lists them when an archive defines global names that don't begin with jfa_ or JFA_.
nm=$1
shift
foreign() { "$nm" --extern-only --defined-only --format=posix "$@" | awk 'NF > 1 && $1 !~ /^jfa_/ && $1 !~ /^JFA_/ && $1 !~ /^__(asan|odr_asan)/ { print $1 }'; }

# The check itself must see a foreign name.
probe=$(mktemp -d) || exit 1
trap 'rm -rf "$probe"' EXIT
echo 'int stray;' | "${CC:-cc}" -x c -c -o "$probe/probe.o" - || exit 1
if [ -z "$(foreign "$probe/probe.o")" ]; then
    echo "the check doesn't see a name that it must refuse"
    exit 1
fi
found=$(foreign "$@")
if [ -n "$found" ]; then
    echo "names without the prefix jfa_:" "$found"
    exit 1
fi
