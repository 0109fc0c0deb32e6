/** Products of many rows of x in 8 bits by AMX's tiles, on a machine that may have none. */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { findCompiler } from "../../scripts/cpu/compiler.ts";
import { flagsOf, setsOf } from "../../scripts/cpu/objects.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { compileOnce } from "../support/compile_once.ts";
import { testFolder } from "../support/folder.ts";

const processors = existsSync("/proc/cpuinfo") ? readFileSync("/proc/cpuinfo", "utf8") : "";
const hasVnni = process.arch === "x64" && processors.includes("avx512_vnni");

test.skipIf(!hasVnni)(
  "tiles in plain C++ give the bits of AVX512_VNNI, for every format (skipped without AVX512_VNNI)",
  async () => {
    const compiler = await findCompiler();
    const set = setsOf(compiler).find(({ name }) => name === "avx512")!;
    const program = testFolder("tiles").file("tiles");
    const source = join(packageRoot, "test/support/byte_tiles.cpp");
    await compileOnce([...flagsOf(compiler, set, ["-O1"]), source], program, compiler);
    const { exitCode, stdout, stderr } = Bun.spawnSync([program], { timeout: 300_000 });
    expect([exitCode, stderr.toString(), stdout.toString()]).toEqual([0, "", "384 compared\n"]);
  },
);
