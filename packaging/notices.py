#!/usr/bin/env python3
"""Licences and components of one program: notices.py NAME TARGET NOTICES SBOM -- CARGO-OPTIONS...

NOTICES gets the licence texts of the crates that are in the program, SBOM a CycloneDX 1.5 list of them.
"""
import datetime
import hashlib
import json
import os
import pathlib
import subprocess
import sys

GLIBC = """
======================================================================================================
The GNU C Library {glibc}
======================================================================================================

The programs are statically linked with the GNU C Library, under the GNU Lesser General Public License 2.1 or
later. Its source is Debian's source package glibc {glibc}. The file NAME-objects.tar.gz of the release has
the objects of each program and the command `relink`, which links them with another version of the library.
The text of the licence follows, behind that of Rust's standard library.
"""
RUST = "/usr/share/doc/libstd-rust-web-dev/copyright"
LGPL = "/usr/share/common-licenses/LGPL-2.1"
STARTS = ("licen", "copying", "notice", "unlicense", "copyright")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def crates(target, options):
    """Name and version of what is linked, without procedural macros."""
    tree = run("cargo", "tree", "--locked", "--target", target, "-e", "normal,no-proc-macro", "--prefix", "none",
               "--format", "{p}", *options)
    return sorted({tuple(line.split()[:2]) for line in tree.splitlines() if line})


def texts(folder):
    """Licence files of a crate, also of the C library in it."""
    found = [path for path in pathlib.Path(folder).glob("*") if path.name.lower().startswith(STARTS)]
    found += [path for path in pathlib.Path(folder).glob("*/LICENSE*")]
    # Of the libraries in the page's script.
    found += [path for path in pathlib.Path(folder).glob("web/dist/licences.txt")]
    return [path.read_text(errors="replace").strip() for path in sorted(found) if path.is_file()]


def texts_of(package):
    """Its own, or that of Apache-2.0: some crates that are under it have no file."""
    own = texts(pathlib.Path(package["manifest_path"]).parent)
    if not own and "Apache-2.0" not in package["license"]:
        sys.exit(f'no licence text in {package["name"]} {package["version"]}')
    return own or [pathlib.Path("LICENSE-APACHE").read_text().strip()]


def write_notices(path, packages, glibc):
    by_text = {}
    for package in packages:
        for text in texts_of(package):
            by_text.setdefault(text, []).append(package)
    rule = "=" * 102
    with open(path, "w") as out:
        out.write("Licences of what is in this program. kmt itself: MIT or Apache-2.0.\n")
        for text, owners in sorted(by_text.items(), key=lambda item: item[1][0]["name"]):
            names = ", ".join(f'{p["name"]} {p["version"]} ({p["license"]})' for p in owners)
            out.write(f"\n{rule}\n{names}\n{rule}\n\n{text}\n")
        out.write(GLIBC.format(glibc=glibc) if glibc else "")
        out.write(f"\n{rule}\nRust's standard library\n{rule}\n\n{pathlib.Path(RUST).read_text()}")
        out.write(f"\n{rule}\nGNU Lesser General Public License 2.1\n{rule}\n\n{pathlib.Path(LGPL).read_text()}" if glibc else "")


def component(package):
    name, version = package["name"], package["version"]
    licence = package["license"] or "NOASSERTION"
    return {"type": "library", "bom-ref": f"pkg:cargo/{name}@{version}", "name": name, "version": version,
            "licenses": [{"expression": licence.replace("/", " OR ")}], "purl": f"pkg:cargo/{name}@{version}"}


def write_sbom(path, name, version, target, packages, glibc):
    when = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    parts = [component(package) for package in packages if package["name"] != name]
    if glibc:
        purl = f"pkg:deb/debian/glibc@{glibc}"
        parts.append({"type": "library", "bom-ref": purl, "name": "glibc", "version": glibc,
                      "licenses": [{"license": {"id": "LGPL-2.1-or-later"}}], "purl": purl})
    main = {"type": "application", "bom-ref": f"{name}@{version}", "name": name, "version": version,
            "licenses": [{"expression": "MIT OR Apache-2.0"}],
            "properties": [{"name": "kmt:target", "value": target}]}
    bom = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
           "metadata": {"timestamp": when.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": main}, "components": parts,
           "dependencies": [{"ref": main["bom-ref"], "dependsOn": [part["bom-ref"] for part in parts]}]}
    pathlib.Path(path).write_text(json.dumps(bom, indent=1, sort_keys=True) + "\n")
    digest = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    print(f"{name} for {target}: {len(parts)} components, {digest[:16]}")


def main():
    name, target, notices, sbom, rest = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[6:]
    manifest = rest[rest.index("--manifest-path"):][:2] if "--manifest-path" in rest else []
    metadata = json.loads(run("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target, *manifest))
    known = {(p["name"], "v" + p["version"]): p for p in metadata["packages"]}
    packages = [known[key] for key in crates(target, rest)]
    glibc = os.environ.get("KMT_GLIBC", "")
    write_notices(notices, packages, glibc)
    version = next(p["version"] for p in packages if p["name"] == name)
    write_sbom(sbom, name, version, target, packages, glibc)


main()
