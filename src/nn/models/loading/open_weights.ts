/** Opens the weights of a folder, whose names may have the prefixes of programs that trained the model. */
import type { SafetensorsReader } from "../../../io/safetensors/file.ts";
import { openFor } from "../../../io/safetensors/open.ts";
import { ShardedSafetensors } from "../../../io/safetensors/sharded.ts";

/** The names of modules that DataParallel, torch.compile, FSDP and activation checkpointing insert. */
const WRAPPERS = /(^|\.)(?:(?:module|_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\.)+/g;

/**
 * Opens the weights of a folder under the names without wrappers.
 *
 * @param prefix a text at the start of all names, which is removed. Default: none
 *
 * @throws {FileError} @throws {FileFormatError}
 */
export function openWeights(path: string, prefix = ""): SafetensorsReader {
  const opened = openFor("loadModel", path);
  const file = opened instanceof ShardedSafetensors ? opened.readHeaders() : opened;
  const renamed = new Map(file.names.map((name) => [name.replace(WRAPPERS, "$1").slice(prefix.length), name]));
  const isRenamed = file.names.some((name) => !renamed.has(name));
  return isRenamed && renamed.size === file.names.length ? new RenamedWeights(file, renamed) : file;
}

/** A file whose tensors have other names. */
class RenamedWeights implements SafetensorsReader {
  readonly names: readonly string[];

  /** @param renamed the name in the file of each tensor */
  constructor(
    private readonly file: SafetensorsReader,
    private readonly renamed: ReadonlyMap<string, string>,
  ) {
    this.names = [...renamed.keys()];
  }

  get path() {
    return this.file.path;
  }

  get metadata() {
    return this.file.metadata;
  }

  has(name: string) {
    return this.renamed.has(name);
  }

  info(name: string) {
    return this.file.info(this.inFile(name));
  }

  tensor(name: string) {
    return this.file.tensor(this.inFile(name));
  }

  /** @internal */
  bytes(name: string) {
    return this.file.bytes(this.inFile(name));
  }

  tensors() {
    return Object.fromEntries(this.names.map((name) => [name, this.tensor(name)]));
  }

  close(): void {
    this.file.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  private inFile(name: string): string {
    return this.renamed.get(name) ?? name;
  }
}
