// Measures the fork-join cost of the cpu backend's threads, on 2, 4, 8, … threads.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findCompiler } from "../scripts/cpu/compiler.ts";
import { packageRoot } from "../src/core/paths.ts";

const { command, linkFlags } = await findCompiler();
const program = join(mkdtempSync(join(tmpdir(), "orchard-threads-")), "threads");
const sources = ["test/support/parallel.cpp", "native/cpu/runtime/parallel.cpp", "native/cpu/runtime/processor.cpp"];
const paths = sources.map((path) => join(packageRoot, path));
const compiled = Bun.spawnSync([...command, "-std=c++17", "-O3", ...paths, "-pthread", ...linkFlags, "-o", program]);
if (!compiled.success) throw new Error(compiled.stderr.toString());
console.log("Fork and join, until all threads have met and the call returned:");
console.log(Bun.spawnSync([program, "time"]).stdout.toString());
