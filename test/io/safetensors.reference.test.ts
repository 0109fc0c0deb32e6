/** Files of the reference implementation (Python's `safetensors`): read bit by bit, and written again byte by byte. */
import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { presentPython, safetensorsAlone } from "../../scripts/fixtures/environment.ts";
import { DTypeError } from "../../src/core/errors.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { io } from "../../src/index.ts";
import { fileDType } from "../../src/io/safetensors/dtypes.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { gaps, writeGaps } from "../ops/run.ts";
import { testFolder } from "../support/folder.ts";
import { bytesIn } from "./bytes.ts";

interface Content {
  readonly metadata: Record<string, string>;
  readonly tensors: Record<string, { dtype: string; shape: number[]; hex?: string; sha256?: string }>;
}

const fixtures = join(packageRoot, "test", "fixtures", "safetensors");
const contents = JSON.parse(readFileSync(join(fixtures, "contents.json"), "utf8")) as Record<string, Content>;
const fixture = (name: string) => join(fixtures, `${name}.safetensors`);
const held = Object.keys(contents).filter((name) => name !== "unheld");
const folder = testFolder("reference");
afterAll(writeGaps);

const content = (tensor: Tensor): Record<string, string> => {
  const bytes = bytesIn(tensor);
  const hash = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
  return bytes.byteLength <= 64 ? { hex: Buffer.from(bytes).toString("hex") } : { sha256: hash };
};

test("there are files of every dtype, with texts and without, and an empty one", () => {
  const dtypes = Object.values(contents).flatMap(({ tensors }) => Object.values(tensors).map(({ dtype }) => dtype));
  expect(new Set(dtypes).size).toBe(20);
  expect(Object.keys(contents["names"].tensors)).toContain("__proto__");
});

describe.each(held)("the file %s.safetensors is read as by the package safetensors", (name) => {
  const { metadata, tensors } = contents[name];

  test("the file is read bit-identically", () => {
    using file = io.openSafetensors(fixture(name));
    expect(file.metadata).toEqual(metadata);
    expect([...file.names].sort()).toEqual(Object.keys(tensors).sort());
    for (const each of file.names) {
      const tensor = file.tensor(each);
      const { dtype, shape, ...bytes } = tensors[each];
      expect([each, tensor.dtype, [...tensor.shape]]).toEqual([each, fileDType(dtype)?.dtype ?? "", shape]);
      expect([each, content(tensor)]).toEqual([each, bytes]);
    }
  });

  test("the file is written again with the same bytes", async () => {
    const path = folder.file(`${name}.safetensors`);
    const loaded = Object.entries(io.loadSafetensors(fixture(name)));
    await io.saveSafetensors(path, Object.fromEntries(loaded.reverse()), { metadata });
    expect(readFileSync(path).equals(readFileSync(fixture(name)))).toBe(true);
  });
});

test("an unsupported dtype is an error when it is read, and the others are read", () => {
  using file = io.openSafetensors(fixture("unheld"));
  expect(file.names.length).toBe(11);
  for (const name of file.names) {
    const { dtype, shape } = contents["unheld"].tensors[name];
    expect(file.info(name)).toMatchObject({ dtype, shape });
    if (name === "float32" || dtype === "C64")
      expect(content(file.tensor(name))).toEqual({ hex: contents["unheld"].tensors[name].hex! });
    else {
      expect(() => file.tensor(name)).toThrow(DTypeError);
      expect(() => file.tensor(name)).toThrow(new RegExp(`expected tensor "${name}" to be one of .*, got ${dtype}`));
    }
  }
});

const python = presentPython(safetensorsAlone);
if (python === undefined)
  gaps.push("safetensors read by the Python package: it is not here; `bun run fixtures` brings it");

test.if(python !== undefined)("the Python package reads files that were written here", async () => {
  const paths = await Promise.all(
    held.map(async (name) => {
      const path = folder.file(`${name}.python.safetensors`);
      const metadata = { ...contents[name].metadata, "a text": 'of "ours"\n' };
      await io.saveSafetensors(path, io.loadSafetensors(fixture(name)), { metadata });
      return path;
    }),
  );
  const script = join(packageRoot, "scripts", "fixtures", "safetensors_files.py");
  const { stdout, stderr, exitCode } = Bun.spawnSync([python!, script, "read", ...paths]);
  expect([exitCode, stderr.toString()]).toEqual([0, ""]);
  const read = JSON.parse(stdout.toString()) as Content[];
  for (const [index, name] of held.entries()) {
    expect(read[index].tensors).toEqual(contents[name].tensors);
    expect(read[index].metadata).toEqual({ ...contents[name].metadata, "a text": 'of "ours"\n' });
  }
});
