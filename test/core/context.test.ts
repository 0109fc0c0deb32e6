import { describe, expect, test } from "bun:test";
import { ContextVariable, runWith } from "../../src/core/context.ts";

const turn = () => new Promise<void>((resolve) => void setImmediate(resolve));

describe("a context variable has a value per call", () => {
  test("a context variable applies in a body, and is restored after it, also after an error", () => {
    const depth = new ContextVariable(0);
    expect(depth.run(1, () => [depth.get(), depth.run(2, () => depth.get()), depth.get()])).toEqual([1, 2, 1]);
    expect(() =>
      depth.run(3, () => {
        throw new Error("body");
      }),
    ).toThrow("body");
    expect(depth.get()).toBe(0);
  });

  test("a context variable applies across awaits, and not to code that runs between them", async () => {
    const name = new ContextVariable("outside");
    const seen: string[] = [];
    const body = (own: string) =>
      name.run(own, async () => {
        for (let step = 0; step < 3; step++) {
          await turn();
          seen.push(name.get());
        }
      });
    const [a, b] = [body("a"), body("b")];
    expect(name.get()).toBe("outside");
    await turn();
    expect(name.get()).toBe("outside");
    await Promise.all([a, b]);
    expect(seen.toSorted()).toEqual(["a", "a", "a", "b", "b", "b"]);
    expect(name.get()).toBe("outside");
  });

  test("setting one variable does not affect others, and several can be set at once", () => {
    const [a, b] = [new ContextVariable<string | null>(null), new ContextVariable(true)];
    const read = () => [a.get(), b.get()];
    expect(runWith([a.bind("x"), b.bind(false)], () => [read(), a.run(null, read)])).toEqual([
      ["x", false],
      [null, false],
    ]);
    expect(read()).toEqual([null, true]);
  });

  test("a variable declared inside another variable's body has its initial value", async () => {
    const outer = new ContextVariable(0);
    const found = await outer.run(1, async () => {
      const inner = new ContextVariable("initial");
      await turn();
      return [outer.get(), inner.get(), inner.run("changed", () => inner.get())];
    });
    expect(found).toEqual([1, "initial", "changed"]);
  });
});
