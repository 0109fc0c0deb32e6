/**
 * Memory and layouts of attention's operands: all are read in place, and copied only to memory that a backend can
 * reach.
 */
import { afterAll, afterEach, describe, expect, spyOn, test } from "bun:test";
import { codepaths, resetCodepaths } from "../../../src/backend/codepaths.ts";
import { metalContext } from "../../../src/backend/metal/context.ts";
import type { BackendName } from "../../../src/backend/names.ts";
import { withBackend, withStrict } from "../../../src/backend/policy.ts";
import { environmentFlag } from "../../../src/core/environment.ts";
import { flashAttention } from "../../../src/ops/attention/flash_attention.ts";
import { backward, detach, grad } from "../../../src/ops/gradient/backward.ts";
import { expand, matmul, mul, randn, reshape, slice, transpose } from "../../../src/ops/index.ts";
import { Generator } from "../../../src/random/generator.ts";
import { Storage } from "../../../src/tensor/storage.ts";
import type { Tensor } from "../../../src/tensor/tensor.ts";

const hasMetal = !environmentFlag("ORCHARD_SKIP_METAL");
const [B, H, D] = [2, 2, 8] as const;
const rowsOf = { q: 20, k: 24, v: 24, gradOut: 20 } as const;
type Name = keyof typeof rowsOf;
const names = Object.keys(rowsOf) as Name[];

type Make = (shape: readonly number[]) => Tensor;
/** [B, H, rows, D] as a tensor that `make` allocates, or a view of it. */
const layouts = {
  contiguous: (make: Make, rows: number) => make([B, H, rows, D]),
  "projected rows": (make: Make, rows: number) => transpose(make([B, rows, H, D]), 1, 2),
  "columns first": (make: Make, rows: number) => transpose(make([B, H, D, rows]), 2, 3),
  "every other row": (make: Make, rows: number) => slice(make([B, H, 2 * rows, D]), { dim: 2, step: 2 }),
  "a part of wider rows": (make: Make, rows: number) =>
    slice(make([B, H, rows, 3 * D]), { dim: 3, start: 5, end: 5 + D }),
  "one head repeated": (make: Make, rows: number) => expand(make([B, 1, rows, D]), [B, H, rows, D]),
  "one number repeated": (make: Make, rows: number) => expand(make([1]), [B, H, rows, D]),
} as const;
type LayoutName = keyof typeof layouts;
const layoutNames = Object.keys(layouts) as LayoutName[];

/** Memory of the device in one of its modes, or of the host. */
type Location = "shared" | "private" | "host";

interface Place {
  readonly layout: LayoutName;
  readonly location: Location;
}
type Places = Readonly<Record<Name, Place>>;

/** The same numbers in any memory. */
function drawAt({ layout, location }: Place, name: Name): Tensor {
  const generator = new Generator(names.indexOf(name));
  const make: Make = (shape) =>
    location === "host"
      ? withBackend("reference", () => randn(shape, { generator }))
      : withBackend("metal", () => randn(shape, { generator, storage: location }));
  const x = layouts[layout](make, rowsOf[name]);
  x.requiresGrad = name !== "gradOut";
  return x;
}

const moves = spyOn(Storage.prototype, "moveTo");
afterEach(() => void moves.mockClear());
afterAll(() => void moves.mockRestore()); // otherwise the spy would keep every storage that later tests move

/** Copies that the device made: between storage modes, into contiguous memory, back, through staging buffers. */
function deviceCopies(): number {
  if (!hasMetal) return 0;
  const { copiesStorage, copiesContiguous, copiesWriteBack, copiesStaging, copiesRequested } =
    metalContext().statistics();
  return copiesStorage + copiesContiguous + copiesWriteBack + copiesStaging + copiesRequested;
}

/**
 * Counts copies of operands or results in `body`, made by the device, by a backend that needs them elsewhere, or by an
 * operation.
 */
function copiesIn(body: () => void): number {
  resetCodepaths();
  moves.mockClear();
  const before = deviceCopies();
  body();
  const operations = codepaths().filter(({ operation }) => operation === "copy");
  const byOperations = operations.reduce((sum, { calls }) => sum + calls, 0);
  return deviceCopies() - before + moves.mock.calls.length + byOperations;
}

interface Operands {
  readonly q: Tensor;
  readonly k: Tensor;
  readonly v: Tensor;
  readonly gradOut: Tensor;
}

const draw = (places: Places): Operands =>
  Object.fromEntries(names.map((name) => [name, drawAt(places[name], name)])) as unknown as Operands;

const options = () => ({ causal: true, dropout: 0.1, generator: new Generator(9) }) as const;

/** Result and gradients, and the number of copies that they require. */
function passes(backend: BackendName, { q, k, v, gradOut }: Operands) {
  const results: Tensor[] = [];
  const copies = copiesIn(() =>
    withStrict(true, () =>
      withBackend(backend, () => {
        const out = flashAttention(q, k, v, options());
        results.push(out, ...grad(out, [q, k, v], { gradOutputs: [gradOut] }));
      }),
    ),
  );
  return { copies, values: results.flatMap((x) => Array.from(x.dataSync(), Number)) };
}

const everywhere = (location: Location, layout: LayoutName = "contiguous"): Places => {
  const place = { layout, location };
  return { q: place, k: place, v: place, gradOut: place };
};

/** Checks that the passes equal the reference backend's results from host memory, and cost this many copies. */
function check(backend: BackendName, places: Places, copies: number): void {
  const onHost = Object.fromEntries(
    names.map((name) => [name, { ...places[name], location: "host" }]),
  ) as unknown as Places;
  const expected = passes("reference", draw(onHost)).values;
  const got = passes(backend, draw(places));
  expect(got.values).toHaveLength(expected.length);
  for (const [at, value] of got.values.entries()) expect(Math.abs(value - expected[at])).toBeLessThan(1e-5);
  expect(got.copies).toBe(copies);
}

const backends: readonly BackendName[] = hasMetal ? ["metal", "cpu", "reference"] : ["cpu", "reference"];
/** Memory that a backend reaches without a copy. */
const native: Readonly<Record<BackendName, readonly Location[]>> = {
  metal: ["shared", "private"],
  cpu: hasMetal ? ["host", "shared"] : ["host"],
  reference: hasMetal ? ["host", "shared"] : ["host"],
};

describe.each(backends)("the storage of attention's operands on %s", (backend) => {
  const places = native[backend].flatMap((location) => layoutNames.map((layout) => ({ layout, location })));

  test.each(places)("operands and gradients are not copied: $layout in $location memory", ({ layout, location }) => {
    check(backend, everywhere(location, layout), 0);
  });

  test.each(places)("an incoming gradient is not copied: $layout in $location memory", ({ layout, location }) => {
    check(backend, { ...everywhere(native[backend][0]), gradOut: { layout, location } }, 0);
  });

  test("mixed layouts and modes are not copied", () => {
    const [first, second] = [native[backend][0], native[backend].at(-1)!];
    const mixed: Places = {
      q: { layout: "projected rows", location: first },
      k: { layout: "one head repeated", location: second },
      v: { layout: "columns first", location: first },
      gradOut: { layout: "every other row", location: second },
    };
    check(backend, mixed, 0);
  });
});

/** Unreachable memory is copied once; in any layout, since the whole memory moves. */
const moved = [
  { backend: "metal", location: "host", resident: "shared" },
  { backend: "cpu", location: "private", resident: "host" },
  { backend: "reference", location: "private", resident: "host" },
] as const;

describe.if(hasMetal).each(moved)("$location memory on $backend", ({ backend, location, resident }) => {
  const some: readonly (readonly Name[])[] = [["q"], ["gradOut"], ["k", "v"], ["q", "k", "v"], names];
  test.each(some.map((which) => ({ which, copies: which.length })))(
    "$copies copies are made: $which",
    ({ which, copies }) => {
      for (const layout of ["contiguous", "projected rows"] as const) {
        const elsewhere = Object.fromEntries(which.map((name) => [name, { layout, location }]));
        check(backend, { ...everywhere(resident), ...elsewhere }, copies);
      }
    },
  );

  test("memory is copied once for all tensors that share it, and stays in its new place", () => {
    const make = () => drawAt({ layout: "contiguous", location }, "k");
    const shared = make();
    const gradOut = drawAt({ layout: "contiguous", location: resident }, "k");
    expect(passes(backend, { q: shared, k: shared, v: shared, gradOut }).copies).toBe(1);
    expect(passes(backend, { q: shared, k: shared, v: shared, gradOut }).copies).toBe(0);
  });
});

describe.each(backends)("storage of a model on %s", (backend) => {
  const on = (body: () => void) => copiesIn(() => withStrict(true, () => withBackend(backend, body)));
  const parameter = (...shape: number[]) => withBackend(backend, () => randn(shape, { requiresGrad: true }));

  test("results of operations are not copied, and neither are their gradients", () => {
    const x = parameter(B, H, 20, D);
    const copies = on(() => {
      const [q, k, v] = [0.5, 1, 2].map((factor) => mul(x, factor)) as [Tensor, Tensor, Tensor];
      const out = flashAttention(q, k, v, options());
      backward(mul(out, 3) as Tensor, detach(mul(out, out) as Tensor));
    });
    expect([copies, x.grad!.shape]).toEqual([0, x.shape]);
  });

  test("leaves have separate gradients without a copy, and views too", () => {
    const leaf = transpose(detach(parameter(B, 20, H, D)), 1, 2);
    leaf.requiresGrad = true;
    const other = parameter(B, H, 20, D);
    expect(on(() => backward(flashAttention(leaf, other, other, options()), detach(other)))).toBe(0);
    expect([leaf.grad!.isContiguous, other.grad!.isContiguous]).toEqual([true, true]);
  });

  test("rows of projections are used in place", () => {
    const [x, weight] = [parameter(B, 20, H * D), parameter(H * D, H * D)];
    const projected = () => transpose(reshape(matmul(x, weight), [B, 20, H, D]), 1, 2);
    const gradOut = withBackend(backend, () => randn([B, H, 20, D]));
    let out: Tensor | undefined;
    const forward = on(() => {
      out = flashAttention(projected(), projected(), projected(), options());
    });
    const back = on(() => backward(out!, gradOut));
    expect([forward, back]).toEqual([0, 0]);
  });
});
