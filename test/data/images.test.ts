/** Images in folders of classes, also from other threads. */
import { beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { pack, unpack } from "../../src/data/loader/transfer.ts";
import { DataError, data, FileError, FileFormatError, type Tensor, tensor } from "../../src/index.ts";
import { dtypes } from "../../src/tensor/dtype.ts";
import { testFolder } from "../support/folder.ts";
import { png } from "../support/png.ts";

const folder = testFolder("pictures");
const failure = async (run: () => unknown): Promise<unknown> => {
  try {
    return await run();
  } catch (cause) {
    return cause;
  }
};

/** A gray image of 2 × 3 pixels with one value. */
const plain = (value: number) => png(new Uint8Array(6).fill(value), { width: 3, height: 2, channels: 1 });

beforeAll(() => {
  for (const name of ["pets/dogs/small", "pets/cats", "pets/.hidden", "empty/cats", "broken/cats"])
    mkdirSync(folder.file(...name.split("/")), { recursive: true });
  const files: Readonly<Record<string, number>> = {
    "pets/dogs/b.png": 21,
    "pets/dogs/a.PNG": 20,
    "pets/dogs/small/c.png": 22,
    "pets/cats/10.png": 10,
    "pets/cats/9.png": 11,
    "pets/.hidden/x.png": 9,
  };
  for (const [name, value] of Object.entries(files)) writeFileSync(folder.file(...name.split("/")), plain(value));
  writeFileSync(folder.file("pets", "cats", "notes.txt"), "no picture");
  writeFileSync(folder.file("pets", "cats", ".png"), "no picture");
  writeFileSync(folder.file("broken", "cats", "a.png"), plain(1).subarray(0, 40));
  symlinkSync(folder.file("pets", "cats", "9.png"), folder.file("pets", "dogs", "z.png"));
  symlinkSync(folder.file("pets"), folder.file("pets", "dogs", "again"));
});

describe("ImageFolder", () => {
  test("classes and images are in the order of their names", async () => {
    const set = new data.ImageFolder(folder.file("pets"), { mode: "gray" });
    expect([set.classes, set.length]).toEqual([["cats", "dogs"], 6]);
    const items = await Promise.all(Array.from({ length: 6 }, (_, at) => set.get(at)));
    expect(items.map(([x, label]) => [x.toArray(), label])).toEqual(
      [
        [10, 0n],
        [11, 0n],
        [20, 1n],
        [21, 1n],
        [22, 1n],
        [11, 1n],
      ].map(([value, label]) => [[Array(2).fill(Array(3).fill(value))], label] as never),
    );
    expect(set.samples.map(([path, label]) => `${label} ${path.slice(folder.file("pets").length + 1)}`)).toEqual([
      "0 cats/10.png",
      "0 cats/9.png",
      "1 dogs/a.PNG",
      "1 dogs/b.png",
      "1 dogs/small/c.png",
      "1 dogs/z.png",
    ]);
  });

  test("batches consist of transformed images, with a seed for each item", async () => {
    const seen: bigint[] = [];
    const set = new data.ImageFolder(folder.file("pets"), {
      transform: async (x, { seed }) => {
        seen.push(seed);
        return x.to("float32").div(2);
      },
    });
    const batches = await Array.fromAsync(new data.DataLoader(set, { batchSize: 4, shuffle: true, seed: 3 }));
    expect(batches.map(([x, y]) => [x.shape, x.dtype, y.dtype])).toEqual([
      [[4, 3, 2, 3], "float32", "int64"],
      [[2, 3, 2, 3], "float32", "int64"],
    ]);
    expect(batches.flatMap(([x]) => (x.amax([1, 2, 3]) as Tensor).toArray() as number[]).toSorted()).toEqual(
      [5, 5.5, 5.5, 10, 10.5, 11].toSorted(),
    );
    expect(new Set(seen).size).toBe(6);
  });

  test("other threads return the same items", async () => {
    const module = new URL("./pictures.ts", import.meta.url);
    const { default: make } = (await import("./pictures.ts")) as typeof import("./pictures.ts");
    const run = async (set: data.Dataset<[Tensor, bigint]>) => {
      const loader = new data.DataLoader(set, { batchSize: 2, shuffle: true, seed: 5 });
      return (await Array.fromAsync(loader)).map(([x, y]) => [x.dtype, x.toArray(), y.toArray()]);
    };
    const options = { folder: folder.file("pets") };
    using threads = await data.openWorkerDataset<[Tensor, bigint]>(module, { workers: 2, options });
    const own = await run(make(options));
    expect(own).toHaveLength(3);
    expect(await run(threads)).toEqual(own);
  });

  test.each([
    ["a folder that is not there", () => new data.ImageFolder(folder.file("none")), FileError, "notFound"],
    ["a folder without classes", () => new data.ImageFolder(folder.file("empty", "cats")), DataError, "noImages"],
    ["a class without pictures", () => new data.ImageFolder(folder.file("empty")), DataError, "noImages"],
    ["an index too far", () => new data.ImageFolder(folder.file("pets")).get(6), Error, "outOfRange"],
    ["a picture that is cut off", () => new data.ImageFolder(folder.file("broken")).get(0), FileFormatError, "damaged"],
  ] as const)("ImageFolder rejects %s", async (_, call, Class, code) => {
    const cause = await failure(call);
    expect(cause).toBeInstanceOf(Class);
    expect(cause).toEqual(expect.objectContaining({ code }));
  });
});

describe("items are sent between threads", () => {
  const sent = (item: unknown): unknown => {
    const { value, moved } = pack(item);
    return unpack(structuredClone(value, { transfer: moved }));
  };

  test.each(dtypes)("a tensor of %s arrives unchanged, also as a view", (dtype) => {
    const x = tensor(
      [
        [0, 1, 1],
        [1, 0, 1],
      ],
      { dtype },
    );
    const got = sent(x.T) as Tensor;
    expect([got.dtype, got.shape, got.toArray()]).toEqual([dtype, [3, 2], x.T.toArray()]);
  });

  test("a bfloat16 view sends its values, and nothing else of its memory", () => {
    const x = tensor([1e30, -0.0078125, Infinity], { dtype: "bfloat16" });
    expect((sent(x) as Tensor).toArray()).toEqual(x.toArray());
    expect(pack(tensor([1, 2, 3, 4]).narrow(0, 1, 2)).moved.map(({ byteLength }) => byteLength)).toEqual([8]);
  });

  test("tensors in lists and objects arrive with other values, and a part that occurs twice", () => {
    const x = tensor([1, 2]);
    const item = {
      x,
      list: [x, 5n, "a", null, undefined],
      date: new Date(0),
      bytes: Uint8Array.of(3),
      ["__proto__"]: x,
    };
    const got = sent({ ...item, self: item }) as typeof item & { self: typeof item };
    expect([got.list.slice(1), got.date, got.bytes]).toEqual([[5n, "a", null, undefined], item.date, item.bytes]);
    expect([got.x.toArray(), (got.list[0] as Tensor).toArray(), got.self.x === got.x]).toEqual([[1, 2], [1, 2], true]);
    const ring: unknown[] = [1];
    ring.push(ring);
    const turned = sent(ring) as unknown[];
    expect(turned[1]).toBe(turned);
  });

  test("an empty tensor and one of rank 0 arrive", () => {
    expect((sent(tensor(3)) as Tensor).shape).toEqual([]);
    expect((sent(tensor([1]).narrow(0, 0, 0)) as Tensor).shape).toEqual([0]);
  });
});
