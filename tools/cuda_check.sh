#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The CUDA backend on a machine that has a GPU but not our build: binaries are made elsewhere and carried there.
#
#   tools/cuda_check.sh pack BUILD   here: programs and tests of BUILD, stripped, with their libraries, into build-cuda/
#   tools/cuda_check.sh run [OUT]    there, in the root of the tree: tests, figures, sanitizers; OUT/all.log has it all
#
# Models are made there (sluice-synth). A part that fails does not stop the others; the status says whether one did.
set -uo pipefail
cd "$(dirname "$0")/.."
pack=build-cuda

if [ "${1:-}" = pack ]; then
    set -e
    names="apps/sluice tools/sluice-synth tests/test_ops tests/test_tiny tests/test_bits"
    # Programs of another state of the sources measure what nobody has: each must be newer than all that it is made of,
    # and than the last commit.
    commit=$(git log -1 --format=%ct)
    for name in $names; do
        newer=$(find src include "${name%%/*}" -type f -name '*.[ch]*' -newer "$2/$name" -print -quit)
        [ "$(stat -c %Y "$2/$name")" -ge "$commit" ] || newer=${newer:-the last commit}
        [ -z "$newer" ] || { echo "$2/$name is older than $newer: build it" >&2; exit 1; }
    done
    dirty=$(git status --porcelain -- src apps tools tests)
    [ -z "$dirty" ] || echo "not committed, but packed:" $dirty >&2
    rm -rf $pack && mkdir -p $pack/lib
    for name in $names; do cp "$2/$name" $pack/; done
    git log -1 --format='%h %s' > $pack/commit
    strip $pack/sluice $pack/sluice-synth $pack/test_*
    ldd $pack/sluice | awk '/=> \// && !/lib(c|m|stdc\+\+|gcc_s|tinfo)\.so/ {print $3}' | xargs -I{} cp -L {} $pack/lib/
    du -sh $pack
    exit
fi

out=${2:-${OUT:-/tmp/cuda_check}}
models=${MODELS:-/dev/shm/sluice-models}
mkdir -p "$out" "$models"
export SLUICE_SOURCE_DIR=$PWD SLUICE_TEST_BACKEND=cuda
status=0

# part NAME SECONDS COMMAND...: its output at the end of OUT/all.log, the last lines of that on the terminal too
part() {
    local name=$1 limit=$2 begin=$SECONDS log
    log=$(mktemp)
    shift 2
    LD_LIBRARY_PATH=$PWD/$pack/lib timeout "$limit" "$@" > "$log" 2>&1
    local rc=$?
    [ $rc -ne 0 ] && status=1
    { echo "== $name: status $rc, $((SECONDS - begin)) s" && cat "$log"; } >> "$out/all.log"
    echo "== $name: status $rc, $((SECONDS - begin)) s" && tail -n "${TAIL:-3}" "$log"
    rm "$log"
}

cat $pack/commit | tee -a "$out/all.log"
nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem --format=csv
TAIL=12 part ops 100 $pack/test_ops
TAIL=12 part tiny 60 $pack/test_tiny
part synth1b 60 $pack/sluice-synth --shape llama-3.2-1b --type Q4_K_M -o "$models/1b.gguf"
part synth8b 120 $pack/sluice-synth --shape llama-3.1-8b --type Q4_K_M -o "$models/8b.gguf"
TAIL=40 part bench1b 90 $pack/sluice bench "$models/1b.gguf" --backend cuda --prefill 512 --decode 128 --depth 0,2048
TAIL=40 part bench8b 120 $pack/sluice bench "$models/8b.gguf" --backend cuda --ctx 10000 --prefill 512 --decode 128 \
    --depth 0,8192 --rows 1,2,4,8
# The same bits from steps of 8 rows and of 512, whose products and attention are other kernels (heads of 64 columns).
seq -s, 1 37 20700 | sed 's/.*/[&]/' > "$out/ids.json"
for chunk in 8 512; do
    part "logits$chunk" 60 $pack/sluice eval logits "$models/1b.gguf" --backend cuda --ids "$out/ids.json" --chunk $chunk \
        --out "$models/$chunk.npy"
done
part samebits 30 cmp "$models/8.npy" "$models/512.npy"
if command -v ncu > /dev/null; then
    part ncu 90 ncu --graph-profiling node --clock-control none --cache-control none --csv --log-file "$out/ncu.csv" \
        --metrics gpu__time_duration.sum,dram__bytes_read.sum,launch__registers_per_thread \
        -k 'regex:matmul|attend|rope|quant|embed|gather|fetch|norm' -c 900 \
        $pack/sluice bench "$models/8b.gguf" --backend cuda --prefill 0 --decode 2 --depth 0 --reps 1
    python3 - "$out/ncu.csv" << 'END' | tee -a "$out/all.log"
import csv, collections, sys
rows = [l for l in open(sys.argv[1], errors="replace") if l.startswith('"')]
time, n, read = collections.Counter(), collections.Counter(), collections.Counter()
unit = {"ns": 1e-3, "us": 1, "ms": 1e3, "byte": 1e-6, "Kbyte": 1e-3, "Mbyte": 1, "Gbyte": 1e3}
for r in csv.DictReader(rows):
    key = (r["Kernel Name"][:60], r["Grid Size"], r["Block Size"])
    value = float(r["Metric Value"].replace(",", "")) * unit.get(r["Metric Unit"], 1)
    if r["Metric Name"] == "gpu__time_duration.sum": time[key] += value; n[key] += 1
    if r["Metric Name"] == "dram__bytes_read.sum": read[key] += value
for key, t in time.most_common(40):
    print(f"{t / n[key]:9.2f} us x {n[key]:5d} {read[key] / n[key]:8.2f} MB {read[key] / t:6.3f} TB/s  {key[0]} {key[1]} {key[2]}")
END
fi
part bits 100 $pack/test_bits --filter tiny
if command -v compute-sanitizer > /dev/null; then
    for run in memcheck:matmul_add memcheck:attend initcheck:matmul_add initcheck:attend racecheck:attend; do
        part "$run" 60 compute-sanitizer --tool "${run%:*}" --error-exitcode 1 $pack/test_ops --no-fork --filter "${run#*:}"
    done
fi
exit $status
