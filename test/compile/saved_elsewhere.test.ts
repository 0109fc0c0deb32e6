/** Saved programs in another process, and on metal: the bits of the compiled function, and typed errors. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";
import * as orchard from "../../src/index.ts";
import { compile, loadProgram, manualSeed, nn, noGrad, type Tensor, tensor, withBackend } from "../../src/index.ts";
import { openSafetensors } from "../../src/io/safetensors/open.ts";
import { saveSafetensors } from "../../src/io/safetensors/save.ts";
import { checkKernels } from "../support/checked.ts";
import { testFolder } from "../support/folder.ts";

checkKernels();

const { path: folder } = testFolder("saved_elsewhere");
let files = 0;
const newPath = () => join(folder, `${files++}.program`);

/** A language model with dropout, as a function of its tokens. */
function makeModel() {
  manualSeed(5);
  const sizes = { vocabularySize: 19, contextLength: 8, layers: 2, heads: 2, width: 32 };
  const model = new nn.GPT({ ...sizes, dropout: 0.25 });
  const fn = (tokens: Tensor) => noGrad(() => model.forward(tokens));
  return compile(fn, { state: model });
}

const tokens = [3, 1, 4, 1, 5, 9, 2, 6];
const given = () => tensor([tokens, tokens.toReversed()], { dtype: "int64" });

async function savedModel(backend: "cpu" | "metal") {
  const compiled = withBackend(backend, makeModel);
  for (let call = 0; call < 4; call++) withBackend(backend, () => compiled(given()));
  const path = newPath();
  await compiled.save(path);
  return { compiled, path };
}

/** The bits of two calls, with random numbers from the seed 7. */
const twoCalls = (backend: "cpu" | "metal", fn: (tokens: Tensor) => unknown): string[] =>
  withBackend(backend, () => {
    manualSeed(7);
    return [0, 1].map(() => Buffer.from((fn(given()) as Tensor).storage.hostBytes()).toString("hex"));
  });

const script = (path: string, backend: string) => `
import { loadProgram, manualSeed, setBackend, tensor } from ${JSON.stringify(join(packageRoot, "src/index.ts"))};
setBackend("${backend}");
const fn = loadProgram(${JSON.stringify(path)});
const tokens = ${JSON.stringify(tokens)};
manualSeed(7);
for (let call = 0; call < 2; call++) {
  const logits = fn(tensor([tokens, tokens.toReversed()], { dtype: "int64" }));
  console.log(Buffer.from(logits.storage.hostBytes()).toString("hex"));
}
`;

test.each(["cpu", "metal"] as const)("%s: another process computes the same bits", async (backend) => {
  const { compiled, path } = await savedModel(backend);
  const child = Bun.spawn([process.execPath, "-e", script(path, backend)], { stdout: "pipe", stderr: "pipe" });
  const [printed, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  expect([await child.exited, errors]).toEqual([0, ""]);
  expect(printed.trim().split("\n")).toEqual(twoCalls(backend, compiled));
});

/** A copy of a program's file with other JSON. */
async function withJson(path: string, change: (json: Record<string, unknown>) => void): Promise<string> {
  using file = openSafetensors(path);
  const json = JSON.parse(file.metadata["orchard.program"]) as Record<string, unknown>;
  change(json);
  const copy = newPath();
  await saveSafetensors(copy, file.tensors(), { metadata: { "orchard.program": JSON.stringify(json) } });
  return copy;
}

describe("programs on metal", () => {
  test("state that a program changes stays in the program", async () => {
    const make = () => {
      const counts = orchard.zeros([3]);
      return compile((x: Tensor) => counts.add_(x).mul(2), { state: counts });
    };
    const compiled = withBackend("metal", make);
    const x = withBackend("metal", () => tensor([1, 2, 3]));
    for (let call = 0; call < 4; call++) withBackend("metal", () => compiled(x));
    const path = newPath();
    await compiled.save(path);
    const loaded = loadProgram(path);
    for (const times of [5, 6, 7]) expect((loaded(x) as Tensor).toArray()).toEqual([2 * times, 4 * times, 6 * times]);
    loaded.dispose();
    expect(() => loaded(x)).toThrow("disposed");
  });

  test("an index out of range is an error when the result is read", async () => {
    const { path } = await savedModel("metal");
    const loaded = loadProgram(path);
    const wrong = tensor([tokens, tokens.with(3, 19)], { dtype: "int64" });
    withBackend("metal", () => {
      const logits = loaded(wrong) as Tensor;
      expect(() => logits.toArray()).toThrow("expected indices of 0 to 18, got another value at element 11");
      expect((loaded(given()) as Tensor).shape).toEqual([2, 8, 19]);
    });
  });

  test("other arguments, other kernels and damaged files are typed errors", async () => {
    const { path } = await savedModel("metal");
    const loaded = loadProgram(path);
    expect(() => loaded(tensor([tokens], { dtype: "int64" }))).toThrow("argument is int64[1, 8]");
    expect(() => loaded(3)).toThrow("not a tensor");
    const resigned = async (change: (json: Record<string, unknown>) => void) => {
      const { digestOf } = await import("../../src/compile/saved/device.ts");
      using file = openSafetensors(path);
      const blocks = new Uint8Array(file.bytes("blocks").storage.hostBytes());
      return withJson(path, (json) => {
        change(json);
        Object.assign(json, { digest: digestOf(json, blocks) });
      });
    };
    const other = await resigned((json) => Object.assign(json, { library: "0" }));
    expect(() => loadProgram(other)).toThrow("another version of the metal backend, whose kernels differ");
    const missing = await resigned((json) =>
      Object.assign((json["calls"] as { kernel: { file: string } }[])[0].kernel, { file: "none/none.metal" }),
    );
    expect(() => loadProgram(missing)).toThrow("another version of the metal backend");
    const damaged = await withJson(path, (json) => Object.assign(json, { advance: 9 }));
    expect(() => loadProgram(damaged)).toThrow("its digest differs");
    const cut = await resigned((json) => Object.assign(json, { state: 0 }));
    expect(() => loadProgram(cut)).toThrow("an entry has no memory");
  });

  test("gradients can't be saved", async () => {
    const layer = withBackend("metal", () => new nn.Linear(4, 4));
    const step = compile((x: Tensor) => layer.forward(x).sum().backward(), { state: layer });
    for (let call = 0; call < 4; call++) withBackend("metal", () => step(orchard.ones([2, 4])));
    await expect(step.save(newPath())).rejects.toThrow("gradients");
  });
});
