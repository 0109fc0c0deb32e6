/** Faults that scripts/fixtures/replay.ts found in complex calls, and under vmap. */
import { describe, expect, test } from "bun:test";
import type { Tensor } from "../../../src/index.ts";
import * as orchard from "../../../src/index.ts";

const { add, conj, fft, linalg, maskedScatter, ones, signal, stack, tensor, transforms, transpose, zeros } = orchard;

const c = (re: number, im: number) => ({ re, im });

describe("functions of complex numbers are correct", () => {
  test("maskedScatter reads its source in order, and maskedSelect has a gradient", () => {
    const source = tensor([c(1, 2), c(3, 4), c(5, 6)]);
    const mask = tensor([true, false, true]);
    expect(maskedScatter(zeros([3], { dtype: "complex64" }), mask, source).toArray()).toEqual([
      c(1, 2),
      c(0, 0),
      c(3, 4),
    ]);
    const x = tensor([c(1, 2), c(3, 4), c(5, 6)], { requiresGrad: true });
    orchard.sum(orchard.imag(orchard.mul(x.maskedSelect(mask), tensor([1, 2])))).backward();
    expect(orchard.eq(x.grad!, tensor([c(0, 1), c(0, 0), c(0, 2)])).toArray()).toEqual([true, true, true]);
  });

  test("products without elements are 1", () => {
    expect(orchard.prod(zeros([0], { dtype: "complex64" })).item()).toEqual(c(1, 0));
    expect(linalg.det(zeros([2, 0, 0], { dtype: "complex128" })).toArray()).toEqual([c(1, 0), c(1, 0)]);
  });

  test("vander accepts complex numbers", () => {
    expect(linalg.vander(tensor([c(0, 1)]), { n: 3 }).toArray()).toEqual([[c(1, 0), c(0, 1), c(-1, 0)]]);
  });

  test("istft of whole spectra reads their first half", () => {
    const spectra = tensor([[c(1, 0)], [c(2, 3)], [c(4, 0)], [c(50, 60)]]);
    const half = spectra.narrow(0, 0, 3);
    const own = { nFft: 4, hopLength: 4, center: false };
    expect(signal.istft(spectra, { ...own, onesided: false }).toArray()).toEqual(signal.istft(half, own).toArray());
  });
});

describe("gradients of complex functions", () => {
  const z = orchard.randn([3, 2], { dtype: "complex128", requiresGrad: true });
  const w = orchard.randn([3, 2], { dtype: "complex128" });
  const functions: Readonly<Record<string, (x: Tensor) => Tensor>> = {
    silu: orchard.silu,
    softsign: orchard.softsign,
    sinc: orchard.sinc,
    tanhshrink: orchard.tanhshrink,
    logsumexp: orchard.logsumexp,
    nanToNum: orchard.nanToNum,
    cov: orchard.cov,
    corrcoef: orchard.corrcoef,
    logaddexp: (x) => orchard.logaddexp(x, w) as Tensor,
    softmax: (x) => orchard.softmax(x, -1),
    logcumsumexp: (x) => orchard.logcumsumexp(x, 0),
    lerp: (x) => orchard.lerp(x, w, x) as Tensor,
    addcdiv: (x) => orchard.addcdiv(w, x, x, { value: 0.5 }) as Tensor,
    normalize: (x) => orchard.normalize(x),
    trapezoid: (x) => orchard.trapezoid(x, w) as Tensor,
  };
  for (const [name, compute] of Object.entries(functions))
    test(name, () => expect(orchard.gradcheck(compute as never, [z])).toBe(true));
});

describe("complex transforms run once under vmap", () => {
  const x = orchard.randn([3, 4, 5], { dtype: "complex128" });
  const warned = (body: () => void): string[] => {
    const lines: string[] = [];
    const { warn } = console;
    console.warn = (line: string) => lines.push(line);
    try {
      body();
    } finally {
      console.warn = warn;
    }
    return lines;
  };

  test("transforms run once for all examples under vmap", () => {
    const functions: readonly ((one: Tensor) => Tensor)[] = [
      (one) => fft.fft(one, { dim: 0 }),
      (one) => fft.ifft2(one),
      (one) => fft.rfft(orchard.real(one)),
      (one) => fft.irfft(one, { n: 7 }),
    ];
    const lines = warned(() => {
      for (const f of functions)
        for (const axis of [0, 2]) {
          const batch = axis === 0 ? x : orchard.movedim(x, 0, 2);
          const got = transforms.vmap(f, { inDims: [axis] })(batch);
          const wanted = stack([0, 1, 2].map((at) => f(x.select(0, at))));
          expect(orchard.allClose(got, wanted, { rtol: 1e-12, atol: 1e-12 })).toBe(true);
        }
    });
    expect(lines).toEqual([]);
  });

  test("vmap joins parts of empty complex matrices", () => {
    const both = zeros([2, 3, 0, 0], { dtype: "complex128" });
    const hermitian = transforms.vmap((a: Tensor) => add(a, conj(transpose(a, -2, -1))) as Tensor);
    expect(hermitian(both).shape).toEqual([2, 3, 0, 0]);
  });

  test("under vmap, nextafter passes the gradient to its first operand, where the operands differ", () => {
    const [a, b] = [tensor([1, 2, 3]), tensor([1, 5, 0])].map((each) => {
      each.requiresGrad = true;
      return each;
    }) as [Tensor, Tensor];
    orchard.sum(orchard.nextafter(a, b)).backward(ones([]));
    expect([a.grad!.toArray(), b.grad!.toArray()]).toEqual([
      [0, 1, 1],
      [0, 0, 0],
    ]);
  });
});
