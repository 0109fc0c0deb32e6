import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { getOrMake } from "../../core/collections.ts";
import { FileFormatError } from "../../core/errors.ts";
import { counted } from "../../core/plural.ts";
import { printedCount, printedLines } from "../../core/printing.ts";
import { nearestName } from "../../core/suggestion.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { withFileErrors } from "../file_errors.ts";
import { formatMetadata } from "../format.ts";
import { brief, isJsonObject, type Json, parseJson } from "../json.ts";
import { SafetensorsFile, type SafetensorsReader, type TensorInfo } from "./file.ts";

/** The names of shards: `model-00001-of-00002.safetensors`. */
const SHARD = /^(.+)-(\d{5})-of-(\d{5})\.safetensors$/;

/**
 * @internal Returns the names that are those of shards of one model, in order; empty if there are none.
 *
 * @throws {FileFormatError} `missingShard` for shards that are not complete.
 */
export function shardsIn(operation: string, folder: string, files: readonly string[]): string[] {
  const found = files.filter((name) => SHARD.test(name)).toSorted();
  const [, stem = "", , count = "0"] = SHARD.exec(found[0] ?? "") ?? [];
  const shardAt = (at: number) => `${stem}-${`${at + 1}`.padStart(5, "0")}-of-${count}.safetensors`;
  const wanted = Array.from({ length: Math.min(Number(count), MOST_SHARDS) }, (_, at) => shardAt(at));
  const missing = wanted.filter((name) => !found.includes(name));
  if (missing.length === 0 && found.length === wanted.length) return found;
  const problem = missing.length > 0 ? `it lacks ${missing.slice(0, 3).join(", ")}` : "it has shards of several models";
  throw new FileFormatError(operation, "missingShard", folder, `${problem}, and an index (${found[0]} is there)`);
}

const MOST_SHARDS = 10_000;

/**
 * @internal Reads tensors from several files (shards), with an index as Hugging Face writes it:
 * `{ "metadata": …, "weight_map": { name: file } }`. A shard is opened when its first tensor is loaded. Without an
 * index, the headers of the given shards are read.
 */
export class ShardedSafetensors implements SafetensorsReader {
  readonly metadata: Readonly<Record<string, string>>;
  names: readonly string[];
  private fileOf: ReadonlyMap<string, string>;
  private readonly files = new Map<string, SafetensorsFile>();

  /**
   * @param path the index, or the folder of the shards
   * @param shards the names of the shards, if there is no index
   */
  constructor(
    readonly path: string,
    private readonly operation: string,
    shards?: readonly string[],
  ) {
    if (shards) {
      this.fileOf = this.mapOf(shards);
      this.metadata = {};
      this.names = [...this.fileOf.keys()];
      return;
    }
    const index = this.parse(withFileErrors(operation, path, () => readFileSync(path, "utf8")));
    this.fileOf = this.readMap(index["weight_map"]);
    this.metadata = toStrings(index["metadata"]);
    this.names = [...this.fileOf.keys()];
    this.checkFiles();
  }

  /** Reads the headers of the shards, which may have other tensors than the index says. */
  readHeaders(): this {
    this.fileOf = this.mapOf([...new Set(this.fileOf.values())]);
    this.names = [...this.fileOf.keys()];
    return this;
  }

  has(name: string): boolean {
    return this.fileOf.has(name);
  }

  info(name: string): TensorInfo {
    return this.fileWith(name).info(name);
  }

  tensor(name: string): Tensor {
    return this.fileWith(name).tensor(name);
  }

  /** @internal */
  bytes(name: string): Tensor {
    return this.fileWith(name).bytes(name);
  }

  tensors(): Record<string, Tensor> {
    return Object.fromEntries(this.names.map((name) => [name, this.tensor(name)]));
  }

  close(): void {
    for (const file of this.files.values()) file.close();
  }

  /** Lists the shards by name, without opening them. */
  toString(): string {
    const counts = new Map<string, number>();
    for (const file of this.fileOf.values()) counts.set(file, (counts.get(file) ?? 0) + 1);
    const metadata = Object.entries(this.metadata).map(([name, value]) => `${name}: ${formatMetadata(value)}`);
    const shards = [...counts].map(([file, count]) => `${file}: ${printedCount(count, "tensor")}`);
    const what = `${printedCount(this.names.length, "tensor")} in ${printedCount(counts.size, "file")}`;
    const lines = [...printedLines(metadata, "entries"), ...printedLines(shards, "files")];
    return [`safetensors ${this.path}: ${what}`, ...lines].join("\n  ");
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  private fileWith(name: string): SafetensorsFile {
    const file = this.fileOf.get(name);
    if (file !== undefined)
      return getOrMake(this.files, file, () => new SafetensorsFile(join(this.folder, file), this.operation));
    const near = nearestName(name, this.names);
    const hint = near === undefined ? `it has ${counted(this.names.length, "other")}` : `did you mean "${near}"?`;
    throw this.fail("missingTensor", `the index has no such tensor; ${hint}`, name);
  }

  private get folder(): string {
    return this.path.endsWith(".json") ? dirname(this.path) : this.path;
  }

  private mapOf(shards: readonly string[]): ReadonlyMap<string, string> {
    try {
      return new Map(
        shards.flatMap((shard) => {
          const file = new SafetensorsFile(join(this.folder, shard), this.operation);
          this.files.set(shard, file);
          return file.names.map((name) => [name, shard] as const);
        }),
      );
    } catch (cause) {
      this.close();
      throw cause;
    }
  }

  private parse(text: string): { readonly [key: string]: Json } {
    const json = parseJson(text, (problem, message) => {
      if (problem === "duplicateKey") return this.fail(problem, `it has ${message}`);
      return this.fail("invalidIndex", problem === "tooDeep" ? `it is ${message}` : `expected JSON: ${message}`);
    });
    if (!isJsonObject(json)) throw this.fail("invalidIndex", "expected an object");
    return json;
  }

  private readMap(json: Json | undefined): ReadonlyMap<string, string> {
    if (!isJsonObject(json)) throw this.fail("invalidIndex", "expected weight_map, which names each tensor's file");
    return new Map(Object.entries(json).map(([name, file]) => [name, this.checkName(name, file)]));
  }

  /** Shards must be in the folder of the index: a downloaded index must not point anywhere else. */
  private checkName(tensor: string, file: Json): string {
    if (typeof file === "string" && file !== "" && file !== ".." && basename(file) === file) return file;
    throw this.fail("invalidIndex", `expected a file in the folder of the index, got ${brief(file)}`, tensor);
  }

  private checkFiles(): void {
    const missing = [...new Set(this.fileOf.values())].filter((file) => !existsSync(join(dirname(this.path), file)));
    if (missing.length > 0) throw this.fail("missingShard", `it lists files that do not exist: ${missing.join(", ")}`);
  }

  private fail(code: string, message: string, tensor?: string): FileFormatError {
    return new FileFormatError(this.operation, code, this.path, message, tensor);
  }
}

/** Metadata as strings. In an index it may have numbers, such as `total_size`. */
const toStrings = (json: Json | undefined): Record<string, string> =>
  isJsonObject(json) ? Object.fromEntries(Object.entries(json).map(([key, value]) => [key, String(value)])) : {};
