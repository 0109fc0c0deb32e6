import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { FileFormatError } from "../../core/errors.ts";
import type { QuantizedTensor } from "../../quant/quantized_tensor.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { missingTensor } from "../missing_tensor.ts";
import { GgufFile, type GgufReader, type GgufTensorInfo } from "./file.ts";
import { formatGguf } from "./format.ts";
import type { GgufValue } from "./types.ts";

/** `name-00001-of-00003.gguf` */
const pattern = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/s;

/** Returns the number of files that a model is split into; 1 if it is not split. */
export function splitCount({ metadata }: GgufReader): number {
  const count = Object.hasOwn(metadata, "split.count") ? metadata["split.count"] : undefined;
  return count?.type === "uint16" ? Number(count.value) : 1;
}

const numberOf = ({ metadata }: GgufReader): number | undefined => {
  const number = Object.hasOwn(metadata, "split.no") ? metadata["split.no"] : undefined;
  return number?.type === "uint16" ? Number(number.value) : undefined;
};

/**
 * @internal A model in several files, as llama.cpp splits them: `split.count` is their number, `split.no` the index of
 * a file, from 0. Metadata comes from the first file.
 */
export class SplitGguf implements GgufReader {
  readonly names: readonly string[];
  private readonly files: readonly GgufFile[];
  private readonly fileOf = new Map<string, GgufFile>();

  /** @param one one of the files, already open; it is closed with the others */
  constructor(
    readonly path: string,
    private readonly operation: string,
    one: GgufFile,
  ) {
    const opened: GgufFile[] = [one];
    try {
      this.files = this.openAll(one, splitCount(one), opened);
      for (const file of this.files) this.addNames(file);
    } catch (cause) {
      for (const file of opened) file.close();
      throw cause;
    }
    this.names = [...this.fileOf.keys()];
  }

  get version(): number {
    return this.files[0].version;
  }

  get metadata(): Readonly<Record<string, GgufValue>> {
    return this.files[0].metadata;
  }

  has(name: string): boolean {
    return this.fileOf.has(name);
  }

  info(name: string): GgufTensorInfo {
    return this.fileWith(name).info(name);
  }

  tensor(name: string): Tensor | QuantizedTensor {
    return this.fileWith(name).tensor(name);
  }

  tensors(): Record<string, Tensor | QuantizedTensor> {
    return Object.fromEntries(this.names.map((name) => [name, this.tensor(name)]));
  }

  close(): void {
    for (const file of this.files) file.close();
  }

  toString(): string {
    return formatGguf(
      this,
      this.files.every(({ isClosed }) => isClosed),
    );
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  private openAll(one: GgufFile, count: number, opened: GgufFile[]): GgufFile[] {
    const paths = this.pathsOf(count);
    const missing = paths.filter((path) => !existsSync(path));
    if (missing.length > 0) throw this.fail("missingShard", `files of the model do not exist: ${missing.join(", ")}`);
    return paths.map((path, number) => {
      const isOpen = basename(path) === basename(this.path);
      const file = isOpen ? one : new GgufFile(path, this.operation);
      if (!isOpen) opened.push(file);
      if (splitCount(file) === count && numberOf(file) === number) return file;
      throw this.fail(
        "invalidSplit",
        `expected ${basename(path)} to be file ${number} of ${count}, got ${numberOf(file)} of ${splitCount(file)}`,
      );
    });
  }

  /** The paths of all files, which must be in the same folder. */
  private pathsOf(count: number): string[] {
    const [, stem, , total] = pattern.exec(basename(this.path)) ?? [];
    if (stem === undefined || Number(total) !== count)
      throw this.fail("invalidSplit", `it is one of ${count} files; expected a name such as model-00001-of-00003.gguf`);
    const digits = (number: number) => String(number).padStart(5, "0");
    return Array.from({ length: count }, (_, number) =>
      join(dirname(this.path), `${stem}-${digits(number + 1)}-of-${digits(count)}.gguf`),
    );
  }

  private addNames(file: GgufFile): void {
    for (const name of file.names) {
      if (this.fileOf.has(name)) throw this.fail("duplicateTensor", "it is in more than one file", name);
      this.fileOf.set(name, file);
    }
  }

  private fileWith(name: string): GgufFile {
    const file = this.fileOf.get(name);
    if (file !== undefined) return file;
    throw missingTensor(this.operation, this.path, name, this.names);
  }

  private fail(code: string, message: string, tensor?: string): FileFormatError {
    return new FileFormatError(this.operation, code, this.path, message, tensor);
  }
}
