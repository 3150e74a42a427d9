#!/usr/bin/env bash
# What must hold of the tree as a whole: the compiler's vocabulary, who includes whom, and how the code is formatted.
set -u
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
cd "$root"
bad=0
complain() { echo "$1"; bad=1; }

# The compiler knows tiles, pipes, roles and engines; families are written in the language.
if found="$(grep -rniwE 'attention|softmax|query|key' compiler/)"; then
    complain "compiler/ uses a family's words:"$'\n'"$found"
fi

# Includes point downwards only. $1: the room; the rest: rooms that it may include.
may_include() {
    local room="$1" allowed="" below
    shift
    for below in "$room" "$@"; do allowed="$allowed|$below"; done
    if found="$(grep -rnE '^#include "(grammar|compiler|runtime|timing|simulator|tests)/' "$room" --include='*.[chly]' |
        grep -vE "#include \"(${allowed#|})")"; then
        complain "$room may not include:"$'\n'"$found"
    fi
}
may_include grammar
may_include compiler/plan grammar/ compiler/target.h
may_include compiler/tuned grammar/
may_include compiler/sema grammar/ compiler/plan/ compiler/tuned/ compiler/target.h
may_include compiler/lower grammar/ compiler/plan/ compiler/target.h runtime/manifest.h
may_include compiler/emit grammar/arena.h compiler/target.h
may_include compiler/reference grammar/ compiler/target.h
may_include runtime
may_include timing runtime/jfa.h
may_include simulator runtime/jfa.h runtime/backend.h runtime/error.h
may_include library simulator/sim.h

# No source file too large to hold in one's head. Tables may be longer: they are listed.
while read -r lines file; do
    case "$file" in total | grammar/jfa.y) continue ;; esac
    [ "$lines" -le 700 ] || complain "$file has $lines lines; split it"
done < <(find grammar compiler runtime timing simulator library -name '*.[ch]' -print0 | xargs -0 wc -l)

# Examples are short: the structure is the schedule's business.
for file in examples/*.jfa; do
    grep -q '^schedule' "$file" && continue
    lines="$(grep -cvE '^\s*(//.*)?$' "$file")"
    [ "$lines" -le 15 ] || complain "$file has $lines lines of code; an example has at most 15"
done

# Versions of clang-format differ in what they make of the same rules: 14 (Debian 12) is the one that counts.
if command -v clang-format > /dev/null && clang-format --version | grep -q 'version 14\.'; then
    files="$(git ls-files '*.c' '*.h' 2> /dev/null || find . -name '*.[ch]' -not -path './build*')"
    # shellcheck disable=SC2086
    if ! found="$(clang-format --dry-run --Werror $files 2>&1)"; then
        complain "not formatted by .clang-format:"$'\n'"$(echo "$found" | grep -E 'error:' | cut -d: -f1 | sort | uniq -c | head -40)"
    fi
fi
[ "$bad" = 0 ] && echo "1 passed, 0 failed"
exit "$bad"
