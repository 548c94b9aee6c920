// node compile.js KSY FOLDER: the description as a Python module in FOLDER. Packages: kaitai-struct-compiler, js-yaml.
const fs = require("fs");
const path = require("path");
const yaml = require("js-yaml");
const compiler = require("kaitai-struct-compiler");

const [ksy, folder] = process.argv.slice(2);
compiler.compile("python", yaml.load(fs.readFileSync(ksy, "utf8")), null, false).then(
  (files) => {
    for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(folder, name), text);
  },
  (error) => {
    console.error(error.message ?? error);
    process.exit(1);
  },
);
