"""Makes an SVG of a screen: kmt-analyze … --color always | python3 docs/picture.py TITLE > screen.svg

Reads text with escape sequences of colour (SGR) and writes one text element a line.
"""
import html
import re
import sys

STYLES = {"1": "b", "2": "d", "31": "r", "32": "g", "33": "y", "36": "c"}
WIDTH, HEIGHT, LEFT, TOP = 8.43, 19, 16, 48


def spans(line):
    """Pieces of a line with their classes."""
    classes = set()
    for piece in re.split(r"(\x1b\[[\d;]*m)", line):
        code = re.fullmatch(r"\x1b\[([\d;]*)m", piece)
        if not code:
            if piece:
                yield piece, " ".join(sorted(classes))
        elif code.group(1) in ("", "0"):
            classes.clear()
        else:
            classes.update(STYLES[part] for part in code.group(1).split(";") if part in STYLES)


def main():
    title = sys.argv[1] if len(sys.argv) > 1 else ""
    lines = sys.stdin.read().rstrip("\n").split("\n")
    plain = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in lines]
    width = int(max(map(len, plain + ["x" * 80])) * WIDTH + 2 * LEFT)
    height = TOP + HEIGHT * len(lines) + 10
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{html.escape(title)}">')
    print("<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d8dee9;"
          "white-space:pre}.b{font-weight:bold;fill:#fff}.d{fill:#8a93a3}.r{fill:#ff7b72}.g{fill:#7ee787}"
          ".y{fill:#e3b341}.c{fill:#56d4dd}</style>")
    print(f'<rect width="{width}" height="{height}" rx="8" fill="#161b22"/>')
    print(f'<text x="{LEFT}" y="26" class="d">$ {html.escape(title)}</text>')
    for number, line in enumerate(lines):
        at, parts = LEFT, []
        for text, classes in spans(line):
            name = f' class="{classes}"' if classes else ""
            parts.append(f'<tspan x="{at:.1f}"{name}>{html.escape(text)}</tspan>')
            at += len(text) * WIDTH
        if parts:
            print(f'<text y="{TOP + HEIGHT * number + 8}" xml:space="preserve">{"".join(parts)}</text>')
    print("</svg>")


main()
