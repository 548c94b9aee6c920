#!/bin/sh
# Saves kernel memory events of this system for `kmt-capture convert` on another machine.
# Works with BusyBox sh; needs root, tracefs, and the tools cat dd kill mkdir mv rmdir sed sleep uname.
set -u
usage() { cat << END
usage: sh $0 DIR [SECONDS]

Saves kernel memory events of this system in the new directory DIR, until Ctrl-C, for SECONDS, or
until STOP happens. On another machine: kmt-capture convert DIR -o FILE.kmt

The events are recorded in a separate ring buffer, which is copied at the end. It keeps the newest
events: the oldest are overwritten. Lost and overwritten events are counted and printed per CPU.

Environment:
  BUFKB=4096                ring buffer of each CPU, in KiB
  EVENTS=kmem               systems or SYSTEM/EVENT, separated by spaces
  STOP=oom/mark_victim      event at which the kernel stops the buffer: SYSTEM/EVENT, or
                            'SYSTEM/EVENT if FILTER'; it is the last one of its CPU
  CLOCK=mono                trace clock; the kernel's current clock if it is not available
  T=/sys/kernel/tracing     mount point of tracefs

Exit codes: 0 done, 1 failed, 2 usage
END
}
case ${1:-} in
    -h | --help) usage; exit 0 ;;
    '' | -*) usage >&2; exit 2 ;;
esac
out=$1; seconds=${2:-}
case $seconds in *[!0-9]*) echo "$0: SECONDS is not a number: $seconds" >&2; exit 2 ;; esac
BUFKB=${BUFKB:-4096}; EVENTS=${EVENTS:-kmem}; CLOCK=${CLOCK:-mono}
STOP=${STOP:-}; at=${STOP%% *}; rest=${STOP#"$at"}
[ -z "$at" ] || EVENTS="$EVENTS $at"
die() { echo "$0: $*" >&2; exit 1; }

mounted= p=
if [ -z "${T:-}" ]; then
    for T in /sys/kernel/tracing /sys/kernel/debug/tracing; do [ -e $T/trace_clock ] && break; done
    if [ ! -e $T/trace_clock ]; then
        T=/sys/kernel/tracing
        mount -t tracefs none $T || die "cannot mount tracefs: run as root on a kernel with CONFIG_FTRACE"
        mounted=1
    fi
fi
mkdir "$out" || die "cannot create $out: give a directory that does not exist yet"
chmod 700 "$out"
O=$out/tracefs; mkdir "$O"
I=$T/instances/kmt-snippet-$$
mkdir "$I" || die "cannot create $I: run as root"

finish() {
    trap '' INT TERM HUP USR1
    # An open buffer keeps the instance.
    [ -z "$p" ] || kill $p 2> /dev/null
    echo 0 > "$I/tracing_on"
    for e in $EVENTS; do [ -e "$I/events/$e/enable" ] && echo 0 > "$I/events/$e/enable"; done
    n=0; until rmdir "$I" 2> /dev/null; do n=$((n + 1)); [ $n -gt 20 ] && { echo "$0: cannot remove $I: remove it with rmdir" >&2; break; }; sleep 1; done
    [ -n "$mounted" ] && umount "$T"
}
trap 'finish; exit 1' TERM HUP

state() { for f in slabinfo buddyinfo pagetypeinfo zoneinfo meminfo vmstat; do cat /proc/$f > "$out/$f.$1" 2> /dev/null; done; }
copy() { for f in "$@"; do for d in "$I" "$T"; do
    [ -e "$d/$f" ] || continue
    case $f in */*) mkdir -p "$O/${f%/*}" ;; esac
    cat "$d/$f" > "$O/$f" 2> /dev/null && break
done; done; }
of() { sed -n "s/^$2: *//p" "$I/per_cpu/$1/stats"; }

echo 0 > "$I/tracing_on"
echo "$CLOCK" > "$I/trace_clock" 2> /dev/null || echo "$0: this kernel has no clock $CLOCK, the clock is $(sed 's/.*\[\(.*\)\].*/\1/' "$I/trace_clock")" >&2
echo "$BUFKB" > "$I/buffer_size_kb" || { finish; die "cannot allocate BUFKB=$BUFKB KiB per CPU: set a smaller BUFKB"; }
echo 1 > "$I/options/overwrite"
for e in $EVENTS; do { [ -e "$I/events/$e/enable" ] && echo 1 > "$I/events/$e/enable"; } || { finish; die "this kernel has no events/$e: set other EVENTS"; }; done
if [ -n "$at" ]; then
    # Written while the buffer is off: the first such event of all would use it up.
    echo "traceoff:1$rest" > "$I/events/$at/trigger" || { finish; die "this kernel cannot stop at STOP='$STOP'"; }
    echo "kmt-snippet-$$ waits for $STOP" > /dev/kmsg
fi
state before
stop=
trap 'stop=1' INT USR1
echo "recording $EVENTS, $BUFKB KiB per CPU${seconds:+, for $seconds s}${STOP:+, until $STOP}; Ctrl-C stops" >&2
echo 1 > "$I/tracing_on"
n=0
while [ -z "$stop" ]; do
    [ -n "$seconds" ] && [ $n -ge "$seconds" ] && break
    [ -n "$at" ] && [ "$(cat "$I/tracing_on")" = 0 ] && { echo "$STOP" > "$out/stopped_by"; break; }
    sleep 1; n=$((n + 1))
done
echo 0 > "$I/tracing_on"
trap '' INT USR1
# The name has the times of the trace clock before and after it was read.
now() { for d in "$I"/per_cpu/cpu*; do
    v=$(of "${d##*/}" "now ts")
    case $v in *.*) echo "${v%.*}${v#*.}000" ;; *) echo "$v" ;; esac
    break
done; }
t=$(now); cat /proc/slabinfo > "$out/slabinfo" 2> /dev/null && mv "$out/slabinfo" "$out/slabinfo.at.$t-$(now)"
state after
# The kernel's messages since the wait began, such as those of an OOM kill.
[ -n "$at" ] && dmesg 2> /dev/null | sed -n "/kmt-snippet-$$ waits/,\$p" > "$out/kmsg"

# Sub-buffers may be larger than pages; each read returns one.
sub=$(sed -n 's/.*field: char data;.*offset:\([0-9]*\);.*size:\([0-9]*\);.*/\1 \2/p' "$I/events/header_page" 2> /dev/null)
[ -n "$sub" ] || sub=$(sed -n 's/.*field: char data;.*offset:\([0-9]*\);.*size:\([0-9]*\);.*/\1 \2/p' "$T/events/header_page")
sub=$((${sub% *} + ${sub#* }))

cpus=0; overrun=0; dropped=0; commit=0; need=0
for d in "$I"/per_cpu/cpu*; do
    c=${d##*/}
    mkdir -p "$O/per_cpu/$c"
    cat "$d/stats" > "$O/per_cpu/$c/stats"
    o=$(of "$c" overrun); r=$(of "$c" "dropped events"); m=$(of "$c" "commit overrun")
    o=${o:-0}; r=${r:-0}; m=${m:-0}
    [ "$r$m" = 00 ] || echo "$c: lost $((r + m)) events: $r dropped, $m commit overrun" >&2
    [ "$o" = 0 ] || echo "$c: $o older events were overwritten" >&2
    # What would have held them too, in KiB; in thousands of events, so that 32 bits are enough.
    e=$(of "$c" entries); n=$((BUFKB * ((o + ${e:-0}) / 1000 + 1) / (${e:-0} / 1000 + 1)))
    [ $n -le $need ] || need=$n
    cpus=$((cpus + 1)); overrun=$((overrun + o)); dropped=$((dropped + r)); commit=$((commit + m))
    : > "$O/per_cpu/$c/trace_pipe_raw"
    [ "$(of "$c" entries)" = 0 ] && continue
    # Kernels before 6.12 wait at the end of the buffer: dd is killed once the buffer is empty.
    dd if="$d/trace_pipe_raw" of="$O/per_cpu/$c/trace_pipe_raw" bs=$sub 2> /dev/null &
    p=$!; same=0; last=
    while left=$(of "$c" entries); [ "$left" != 0 ] && [ $same -lt 30 ]; do
        [ "$left" = "$last" ] && same=$((same + 1)) || same=0
        last=$left; sleep 1
    done
    sleep 1; kill $p 2> /dev/null; wait $p 2> /dev/null; p=
    cat "$d/stats" > "$O/per_cpu/$c/stats.after"
done

copy events/header_page events/header_event printk_formats saved_cmdlines saved_tgids trace_clock trace_options \
    buffer_size_kb buffer_subbuf_size_kb current_tracer timestamp_mode
for e in $EVENTS ftrace; do
    case $e in */*) l="$T/events/$e/format" ;; *) l="$T/events/$e/*/format" ;; esac
    for f in $l; do copy "events/${f#"$T"/events/}"; done
    for f in ${l%format}enable; do case $e in ftrace) ;; *) copy "events/${f#"$T"/events/}" ;; esac; done
done
cat /proc/kallsyms > "$out/kallsyms" 2> /dev/null
cat /proc/modules > "$out/modules" 2> /dev/null
cat /proc/cmdline > "$out/cmdline"
cat /sys/kernel/notes > "$out/notes" 2> /dev/null
mkdir "$out/module_notes"
for f in /sys/module/*/notes/.note.gnu.build-id; do
    m=${f#/sys/module/}
    [ -e "$f" ] && cat "$f" > "$out/module_notes/${m%%/*}"
done
uname -a > "$out/uname"
k=$(sed -n 's/^KernelPageSize: *\([0-9]*\) kB/\1/p' /proc/self/smaps 2> /dev/null | sed -n 1p)
[ -n "$k" ] && echo $((k * 1024)) > "$out/pagesize"
finish
lost=$((dropped + commit))
echo "lost $lost events on $cpus CPUs: $dropped dropped, $commit commit overrun; $overrun older events were overwritten" >&2
if [ -n "${REMOTE:-}" ]; then more="-b ${need}K, or fewer events (-e)"; else more="BUFKB=$need, or fewer EVENTS"; fi
[ $overrun -gt 0 ] && echo "to keep all of them: $more" >&2
[ -n "${REMOTE:-}" ] || echo "saved in $out; on another machine: kmt-capture convert $out -o trace.kmt" >&2
