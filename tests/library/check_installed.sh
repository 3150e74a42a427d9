#!/usr/bin/env bash
# check_installed.sh SOURCE BUILD VERSION: what is installed serves a program by itself, from any folder. Installs, moves the
# prefix, builds a kernel with the installed jfac and examples/library against the library, shared and static, by CMake and by
# pkg-config, and runs all of them on the simulator.
set -euo pipefail
source="$1" build="$2" version="$3"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
fail() { echo "failed: $1"; exit 1; }

cmake --install "$build" --prefix "$work/first" > "$work/log" || fail "$(cat "$work/log")"
mkdir "$work/moved"
mv "$work/first" "$work/moved/prefix"
prefix="$work/moved/prefix"
libdir="$(dirname "$(find "$prefix" -name jfa.pc)")/.."
libdir="$(cd "$libdir" && pwd)"

# Nothing that others read names the source, the build or the first prefix.
mapfile -t texts < <(find "$prefix" -name '*.cmake' -o -name '*.pc' -o -name '*.h')
[ "${#texts[@]}" -ge 6 ] || fail "only ${#texts[@]} texts were installed: ${texts[*]}"
grep -nF -e "$source" -e "$build" -e "$work/first" "${texts[@]}" && fail "installed files name folders of the build"

# The header serves C and C++ by itself.
echo '#include <jfa/jfa.h>' > "$work/include.c"
"${CC:-cc}" -std=c99 -pedantic -Wall -Wextra -Werror -I"$prefix/include" -fsyntax-only "$work/include.c" || fail "the header isn't C99"
"${CXX:-c++}" -x c++ -std=c++11 -pedantic -Wall -Wextra -Werror -I"$prefix/include" -fsyntax-only "$work/include.c" ||
    fail "the header isn't C++11"

# So do the README's lines, in a function that has what they name.
{
    echo '#include <stdio.h>'
    echo '#include <jfa/jfa.h>'
    echo 'jfa_status readme(int32_t *offsets, int tokens, int heads, int kv_heads, int sequences, uint64_t q, uint64_t k, uint64_t v,'
    echo '                  uint64_t o, uint64_t lse, void *stream);'
    echo 'jfa_status readme(int32_t *offsets, int tokens, int heads, int kv_heads, int sequences, uint64_t q, uint64_t k, uint64_t v,'
    echo '                  uint64_t o, uint64_t lse, void *stream) {'
    echo '    jfa_device *device; jfa_module *module; jfa_kernel *kernel; jfa_plan *plan; jfa_error err;'
    sed -n '/^```c$/,/^```$/p' "$source/README.md" | grep -v -e '^```' -e '^#include'
    echo '    return status; }'
} > "$work/readme.c"
[ "$(grep -c 'jfa_' "$work/readme.c")" -gt 10 ] || fail "README.md has no lines of C"
"${CC:-cc}" -std=c17 -Wall -Wextra -Werror -I"$prefix/include" -fsyntax-only "$work/readme.c" || fail "README.md's lines don't compile"

# The copy of the kernel lies elsewhere than the source's templates: jfac must find its own, and says in the PTX which it took.
cp "$source/examples/dense.jfa" "$work/"
cd "$work"
"$prefix/bin/jfac" build dense.jfa --target sm_100a --emit ptx -o "$work/dense.ptx" || fail "the installed jfac builds no kernel"
grep -q "^[[:space:]]*\.file.*$prefix/" "$work/dense.ptx" || fail "the installed jfac takes templates from elsewhere"

# Runs a program; the rest are the variables that it needs.
expect_success() {
    local name="$1" program="$2"
    shift 2
    env "$@" "$program" "$work/dense.ptx" > "$work/output" 2>&1 || fail "$name: $(cat "$work/output")"
    grep -qF "libjfa $version on 'simulated sm_100a'" "$work/output" || fail "$name printed: $(cat "$work/output")"
    echo "$name: $(cat "$work/output")"
}
is_linked_to_libjfa() { readelf -d "$1" | grep -q 'NEEDED.*libjfa\.so'; }

for static in OFF ON; do
    folder="$work/cmake-$static"
    cmake -S "$source/examples/library" -B "$folder" -DCMAKE_PREFIX_PATH="$prefix" -DSTATIC_JFA="$static" \
        -DCMAKE_C_FLAGS='-Wall -Wextra -Werror' > "$work/log" 2>&1 || fail "$(cat "$work/log")"
    cmake --build "$folder" > "$work/log" 2>&1 || fail "$(cat "$work/log")"
    expect_success "CMake, static $static" "$folder/attend"
done
is_linked_to_libjfa "$work/cmake-OFF/attend" || fail "jfa::jfa isn't the shared library"
is_linked_to_libjfa "$work/cmake-ON/attend" && fail "jfa::jfa_static isn't the static library"
# A package of another minor version won't do while the major one is 0.
sed "s/find_package(jfa/find_package(jfa 0.9/" "$source/examples/library/CMakeLists.txt" > "$work/CMakeLists.txt"
cp "$source/examples/library/attend.c" "$work/"
cmake -S "$work" -B "$work/newer" -DCMAKE_PREFIX_PATH="$prefix" > "$work/log" 2>&1 && fail "version 0.9 was found"

export PKG_CONFIG_PATH="$libdir/pkgconfig"
[ "$(pkg-config --modversion jfa)" = "$version" ] || fail "jfa.pc is of another version"
# shellcheck disable=SC2046
"${CC:-cc}" "$work/attend.c" $(pkg-config --cflags --libs jfa) -lm -o "$work/shared"
expect_success "pkg-config, shared" "$work/shared" LD_LIBRARY_PATH="$libdir"
# shellcheck disable=SC2046
"${CC:-cc}" "$work/attend.c" $(pkg-config --static --cflags --libs jfa | sed 's/-ljfa/-l:libjfa.a/') -o "$work/static"
is_linked_to_libjfa "$work/static" && fail "the static program wants the shared library"
expect_success "pkg-config, static" "$work/static"

# The example tells right from wrong: a kernel for another chip, and one that computes something else.
"$prefix/bin/jfac" build dense.jfa --target sm_90a --emit ptx -o "$work/other.ptx"
"$work/cmake-ON/attend" "$work/other.ptx" > "$work/output" 2>&1 && fail "a kernel for another chip was run"
grep -q 'built for sm_90a, but the device .* is sm_100a' "$work/output" || fail "no message: $(cat "$work/output")"
sed 's/^}/  mask (q, k) => k <= q;\n}/' "$source/examples/dense.jfa" > causal.jfa
"$prefix/bin/jfac" build causal.jfa --target sm_100a --emit ptx -o "$work/causal.ptx"
"$work/cmake-ON/attend" "$work/causal.ptx" > "$work/output" 2>&1 && fail "the example takes a causal kernel's output for right"
grep -q 'of plain C' "$work/output" || fail "the causal kernel didn't run: $(cat "$work/output")"
echo "all as it should be"
