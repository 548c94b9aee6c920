// Makes dist/ from src/: the script, the style, the policy that allows exactly these, and the licences of what is in them.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";

const to = process.argv[2] ?? "dist";
const common = { bundle: true, minify: true, charset: "utf8", legalComments: "none", logLevel: "warning" };
await build({ ...common, entryPoints: ["src/main.ts"], outfile: `${to}/page.js`, format: "iife", target: "es2022" });
await build({ ...common, entryPoints: ["src/page.css"], outfile: `${to}/page.css` });

const hash = (name) => createHash("sha256").update(readFileSync(`${to}/${name}`)).digest("base64");
const policy = [
  "default-src 'none'",
  `script-src 'sha256-${hash("page.js")}'`,
  `style-src 'sha256-${hash("page.css")}'`,
  "base-uri 'none'",
  "form-action 'none'",
];
writeFileSync(`${to}/policy.txt`, policy.join("; ") + "\n");

const { dependencies } = JSON.parse(readFileSync("package.json", "utf8"));
const licences = Object.keys(dependencies).sort().map((name) => {
  const about = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
  return `${name} ${about.version} (${about.license})\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8")}`;
});
writeFileSync(`${to}/licences.txt`, licences.join("\n---\n\n"));
