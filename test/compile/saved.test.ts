/** Saved programs: the bits of the compiled function, and typed errors for other arguments, versions and files. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import * as orchard from "../../src/index.ts";
import {
  compile,
  loadProgram,
  manualSeed,
  nn,
  optim,
  randn,
  type Tensor,
  tensor,
  withBackend,
} from "../../src/index.ts";
import { openSafetensors } from "../../src/io/safetensors/open.ts";
import { saveSafetensors } from "../../src/io/safetensors/save.ts";
import { hash, Random } from "../ops/samples.ts";
import { testFolder } from "../support/folder.ts";
import { repeats } from "../support/repeats.ts";

const { path: folder } = testFolder("saved");
let files = 0;
const newPath = () => join(folder, `${files++}.program`);

/** A net with random numbers, running statistics, checks of indices, constants, views and several results. */
function makeFunction() {
  manualSeed(1);
  const table = new nn.Embedding(5, 6);
  const norm = new nn.BatchNorm1d(6);
  const fn = (index: Tensor, { x, scale }: { x: Tensor; scale: number }) => {
    const rows = table
      .forward(index)
      .add(x)
      .mul(scale)
      .add(tensor([1, 2, 3, 4, 5, 6]));
    const y = norm.forward(orchard.dropout(rows, 0.5));
    return [y.transpose(0, 1), y.exp().sum(), x.select(0, 1), norm.running_mean, "text", undefined] as const;
  };
  return {
    norm,
    compiled: compile(
      orchard.noGrad(() => fn),
      { state: [table, norm] },
    ),
  };
}

const argumentsOf = (): [Tensor, { x: Tensor; scale: number }] => [
  orchard.randint(0, 5, [4]),
  { x: randn([6, 6]).narrow(0, 1, 4), scale: 0.5 },
];

const listOf = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_, each) => (orchard.Tensor.isTensor(each) ? each.toArray() : each) ?? null));

async function saved(backend: "cpu" | "metal" = "cpu") {
  const { norm, compiled } = withBackend(backend, makeFunction);
  for (let call = 0; call < 4; call++) withBackend(backend, () => compiled(...argumentsOf()));
  const path = newPath();
  await compiled.save(path);
  return { norm, compiled, path };
}

test.each(["cpu", "metal"] as const)("%s: a loaded program has the function's bits", async (backend) => {
  const { compiled, path } = await saved(backend);
  const loaded = loadProgram(path);
  withBackend(backend, () => {
    for (let call = 0; call < 5; call++) {
      const given = argumentsOf();
      const ran = (fn: (...values: never[]) => unknown) => {
        manualSeed(call);
        return [listOf((fn as (...values: unknown[]) => unknown)(...given)), orchard.randn([2]).toArray()];
      };
      expect(ran(loaded)).toEqual(ran(compiled));
    }
  });
  loaded.dispose();
  expect(() => loaded()).toThrow("disposed");
});

test("arguments of another layout, and values out of range, throw typed errors", async () => {
  const { path } = await saved();
  const loaded = loadProgram(path);
  const [index, { x }] = argumentsOf();
  const codeOf = (...values: unknown[]) => {
    try {
      return loaded(...values) && "none";
    } catch (error) {
      return (error as orchard.OrchardError).code;
    }
  };
  expect(codeOf(index, { x, scale: 0.5 })).toBe("none");
  expect(codeOf(index, { x, scale: 0.25 })).toBe("otherArguments");
  expect(codeOf(index.narrow(0, 0, 2), { x, scale: 0.5 })).toBe("otherArguments");
  expect(codeOf(x, index)).toBe("otherArguments");
  expect(codeOf()).toBe("otherArguments");
  expect(codeOf(orchard.full([4], 9, { dtype: "int64" }), { x, scale: 0.5 })).toBe("invalidArgument");
});

describe("what can't be saved throws a typed error", () => {
  const layer = new nn.Linear(2, 2);
  const optimizer = new optim.SGD(layer.parameters(), { lr: 0.1 });
  const generator = new orchard.Generator(1);
  const train = (x: Tensor) => {
    layer.forward(x).sum().backward();
    optimizer.step();
    optimizer.zeroGrad();
  };
  const cases: Readonly<Record<string, (x: Tensor) => unknown>> = {
    optimizer: train,
    gradients: (x) => layer.forward(x).sum().backward(),
    "a generator": () => randn([2], { generator }),
    "neither a tensor": (x) => [x.exp(), Symbol.iterator],
  };
  test.each(Object.entries(cases))("%s can't be saved", async (part, fn) => {
    const compiled = compile(fn, { state: [layer, optimizer] });
    for (let call = 0; call < 4; call++) withBackend("cpu", () => compiled(randn([3, 2])));
    await expect(compiled.save(newPath())).rejects.toThrow(part);
  });

  test("a function that is not recorded yet can't be saved", async () => {
    const compiled = compile((x: Tensor) => x.exp());
    await expect(compiled.save(newPath())).rejects.toThrow("not recorded yet");
  });
});

const METADATA = "orchard.program";

/** A copy of a program's file with other JSON. */
async function withJson(path: string, change: (json: Record<string, unknown>) => void): Promise<string> {
  using file = openSafetensors(path);
  const json = JSON.parse(file.metadata[METADATA]) as Record<string, unknown>;
  change(json);
  const copy = newPath();
  await saveSafetensors(copy, file.tensors(), { metadata: { [METADATA]: JSON.stringify(json) } });
  return copy;
}

test("programs of other versions are rejected", async () => {
  const { path } = await saved();
  const later = await withJson(path, (json) => Object.assign(json, { version: 3 }));
  expect(() => loadProgram(later)).toThrow("expected a program of version 2, got 3");
  const other = await withJson(path, (json) => Object.assign(json, { library: "0" }));
  expect(() => loadProgram(other)).toThrow("another version of the cpu backend");
  const none = newPath();
  await saveSafetensors(none, { x: randn([2]) });
  expect(() => loadProgram(none)).toThrow("it has no program");
  expect(() => loadProgram(join(folder, "missing"))).toThrow("no such file");
});

/** Numbers and texts of the JSON, replaced in place. */
function damage(value: unknown, random: Random): unknown {
  if (typeof value !== "object" || value === null)
    return random.next() < 0.5 ? [-1, 1e9, 0.5, "x", null][random.integer(0, 4)] : value;
  const keys = Object.keys(value);
  if (keys.length === 0) return [0];
  const key = keys[random.integer(0, keys.length - 1)];
  (value as Record<string, unknown>)[key] = damage((value as Record<string, unknown>)[key], random);
  return value;
}

test("damaged programs throw typed errors when they are loaded, or run", async () => {
  const { path } = await saved();
  using file = openSafetensors(path);
  const tensors = file.tensors();
  const codes = new Set<string>();
  const tryIt = (damaged: string) => {
    try {
      const loaded = loadProgram(damaged);
      orchard.tidy(() => void loaded(...argumentsOf()));
      loaded.dispose();
      codes.add("ran");
    } catch (error) {
      expect(error).toBeInstanceOf(orchard.OrchardError);
      codes.add((error as orchard.OrchardError).code);
    }
  };
  for (let draw = 0; draw < repeats({ usual: 60, all: 3000 }); draw++) {
    const random = new Random(hash(`damaged ${draw}`));
    if (random.next() < 0.5) {
      tryIt(await withJson(path, (json) => void damage(json, random)));
      continue;
    }
    const name = random.next() < 0.5 ? "words" : "blocks";
    const changed = tensors[name].clone();
    const values = changed.storage.array(changed.dtype) as unknown as Float64Array;
    for (let change = random.integer(1, 3); change > 0; change--)
      values[random.integer(0, values.length - 1)] = [0, -1, 1, 7, 1e6, 2 ** 30, 64][random.integer(0, 6)];
    const copy = newPath();
    await saveSafetensors(copy, { ...tensors, [name]: changed }, { metadata: file.metadata });
    tryIt(copy);
  }
  expect(codes).toContain("damaged");
});
