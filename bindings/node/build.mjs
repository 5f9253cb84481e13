// Builds the package in the source tree: `node build.mjs`. Needs Rust. `--addon FILE` uses an addon that is already built, and
// `--sources` compiles only the TypeScript.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = dirname(fileURLToPath(import.meta.url));
const run = (program, words, options = {}) => execFileSync(program, words, { cwd: folder, stdio: "inherit", ...options });

/** Compiles the sources to CommonJS. ES modules re-export them, so that a process that loads both has each class only once. */
function compile() {
  if (!existsSync(join(folder, "node_modules", ".bin", "tsc"))) {
    run("npm", ["install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"]);
  }
  rmSync(join(folder, "dist"), { recursive: true, force: true });
  run(join(folder, "node_modules", ".bin", "tsc"), ["--project", "."]);
  for (const file of readdirSync(join(folder, "dist")).filter((name) => name.endsWith(".js"))) {
    const name = file.slice(0, -3);
    writeFileSync(join(folder, "dist", `${name}.mjs`), `export * from "./${name}.js";\n`);
    writeFileSync(join(folder, "dist", `${name}.d.mts`), `export * from "./${name}.js";\n`);
  }
}

function build() {
  const target = process.env.CARGO_TARGET_DIR ?? join(folder, "..", "target");
  const manifest = join(folder, "Cargo.toml");
  run("cargo", ["build", "--release", "--locked", "--manifest-path", manifest, "--target-dir", target]);
  const library = { darwin: "libendmark_node.dylib", win32: "endmark_node.dll" }[process.platform] ?? "libendmark_node.so";
  return join(target, "release", library);
}

if (!process.argv.includes("--sources")) {
  const at = process.argv.indexOf("--addon");
  const addon = at < 0 ? build() : process.argv[at + 1];
  // Remove the old addon first, so that a running process keeps its own copy.
  rmSync(join(folder, "endmark.node"), { force: true });
  copyFileSync(addon, join(folder, "endmark.node"));
}
compile();
