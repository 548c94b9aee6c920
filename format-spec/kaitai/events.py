"""events.py FILE.kmt: the events of a trace and what they add up to, read from Python by way of kmt.ksy.

    npm install kaitai-struct-compiler@0.11.0 js-yaml@4.1.0 && pip install kaitaistruct==0.11 zstandard
    node format-spec/kaitai/compile.js format-spec/kmt.ksy FOLDER     # makes FOLDER/kmt.py
    PYTHONPATH=FOLDER:format-spec/kaitai python3 format-spec/kaitai/events.py trace.kmt
"""

import pathlib
import sys

from check import Reader


def main():
    told = Reader(pathlib.Path(sys.argv[1])).told()
    events = sorted(told["events"], key=lambda e: (e["time"], e["cpu"]))
    allocated = 0
    for event in events:
        fields = {k: v for k, v in event["fields"].items() if not k.startswith("common_")}
        allocated += fields.get("bytes_alloc", 0)
        print(event["time"], event["cpu"], event["class"], fields)
    print(f"{len(events)} events, {allocated} bytes allocated, {len(told['losses'])} gaps")


if __name__ == "__main__":
    main()
