say() { echo "KMT-$N $*"; }
# A program or script that still runs ends first: it would make files in the folder again. What watches it ends last.
leave() {
    trap '' HUP INT TERM PIPE
    unwatch
    [ -z "$o" ] || end $o
    [ -z "$p" ] || { kill -TERM $p; wait $p; } 2> /dev/null
    [ -z "$d" ] || rm -rf "$d"
    [ -z "$w" ] || end $w
    o= p= w= d=
}
trap leave EXIT
trap 'exit 1' HUP INT TERM PIPE
# `watch` gives up if the next command does not come, `unwatch` ends it. A shell that waits for one handles other signals only after it.
# What watches ignores the signals that end the shell.
watch() { a=; [ -z "$d" ] || { { trap '' HUP INT TERM PIPE; sleep "$S"; sleep "$H"; rm -rf "$d"; kill -KILL $$; } < /dev/null > /dev/null 2>&1 3<&- & a=$!; }; }
unwatch() { [ -z "$a" ] || end $a; a=; }
# A child that has not run yet has our traps and would lose another signal.
end() { { kill -KILL "$@" && wait "$@"; } 2> /dev/null; }
folder() {
    unwatch
    need=$1; shift; shell=$(command -v sh); case $shell in /*) ;; *) shell=/bin/sh ;; esac
    for c; do
        d=${c%/}/kmt-$N
        (umask 077 && mkdir "$d") 2> /dev/null || { d=; continue; }
        [ "$need" = any ] && break
        { printf '#!%s\nexit 0\n' "$shell" > "$d/try"; } 2> /dev/null && chmod 700 "$d/try" && "$d/try" 2> /dev/null && rm -f "$d/try" && break
        rm -rf "$d"; d=
    done
    watch
    say folder "$d"
}
# Returns when a command prints the same for the time of silence; with G, the other machine is told until then. Not every
# sleep has fractions of seconds.
G=
K=2; sleep 0.01 2> /dev/null || { H=$S; K=1; }
still() {
    n= k=0
    while [ $k -lt $K ]; do
        sleep "$H" || exit
        m=$("$@" 2> /dev/null)
        if [ "$m" = "$n" ]; then k=$((k + 1)); else k=0; n=$m; [ -z "$G" ] || say grown "$m"; fi
    done
}
size() { cat "$1" | wc -c; }
stalled() {
    trap '' HUP INT TERM PIPE
    G=1
    still size "$2"
    # The shell cleans up, if it is still there.
    { kill -KILL "$1"; sleep 1; kill -0 $$ || rm -rf "$d"; } 2> /dev/null
}
take() {
    unwatch
    : > "$2" || return
    exec 3<&0
    say ready
    if [ "$3" = head ]; then head -c "$1" <&3 > "$2" & else dd ibs=1 obs=4096 count="$1" <&3 > "$2" 2> /dev/null & fi
    p=$!
    stalled $p "$2" < /dev/null 2> /dev/null 3<&- & w=$!
    wait $p; r=$?; p=
    end $w; w=
    exec 3<&-
    [ $r -lt 128 ] || exit 1
    r="$(cat "$2" | wc -c) $(cksum < "$2" 2> /dev/null)"
    watch
    say got "$r"
}
silent() {
    trap '' HUP INT TERM PIPE
    still cat "$d/beat"
    kill -TERM "$1"; kill -TERM "$2"
    for i in 1 2 3 4 5; do sleep 1; kill -0 "$1" || break; done
    rm -rf "$d"
}
script() {
    unwatch
    REMOTE=1 sh "$d/script" "$d/out" $1 < /dev/null >&2 & p=$!
    silent $p $$ < /dev/null > /dev/null 2>&1 & w=$!
    say running
    b=0
    while IFS= read -r l; do
        case $l in q*) kill -USR1 $p ;; esac
        kill -0 $p 2> /dev/null || break
        b=$((b + 1)); echo $b > "$d/beat"
    done
    kill -0 $p 2> /dev/null && exit 1
    wait $p; r=$?; p=
    end $w; w=
    watch
    say status $r
}
# While files are sent, the shell reads no beats: another program does, and its file grows.
deliver() {
    unwatch
    exec 3<&0
    cat <&3 > "$d/beats" & p=$!
    gone $p < /dev/null > /dev/null 2>&1 3<&- & w=$!
    walk "$d/out"
    end $w $p; w= p=
}
gone() {
    trap '' HUP INT TERM PIPE
    still size "$d/beats"
    f=$(cat "$d/cat"); rm -rf "$d"; kill -KILL $$ "$1" "$f"
}
walk() {
    for f in "$1"/*; do
        if [ -d "$f" ]; then
            walk "$f"
        elif [ -f "$f" ]; then
            say file "$(cat "$f" | wc -c)" "${f#"$d/out/"}"
            cat "$f" & o=$!
            echo $o > "$d/cat"
            wait $o; o=
        fi
    done
}
