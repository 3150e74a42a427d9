#!/usr/bin/env bash
# check_serialised.sh JFAC: what ptxas says when it serialises products is understood: the build is refused and leaves no
# file. It does so where a role's registers aren't raised, which a ptxas that stands before the real one sees to.
set -u
jfac=$1
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
real="$("$jfac" version | sed -n 's/^ptxas .*(\(.*\))$/\1/p')"
if [ -z "$real" ]; then
    echo "jfac doesn't say which ptxas it runs"
    exit 1
fi
cat > "$work/ptxas" << EOF
#!/usr/bin/env bash
for argument in "\$@"; do
    case "\$argument" in *.ptx) sed -i '/setmaxnreg/d' "\$argument" ;; esac
done
exec "$real" "\$@"
EOF
chmod +x "$work/ptxas"
JFAC_PTXAS="$work/ptxas" "$jfac" build "$root/examples/dense.jfa" --target sm_90a -o "$work/dense.cubin" 2> "$work/said"
status=$?
cat "$work/said"
[ $status -eq 1 ] && [ ! -e "$work/dense.cubin" ] && grep -q "C75.*serialized" "$work/said" &&
    grep -q "products don't overlap" "$work/said"
