/**
 * Every error that Orchard throws. `code` is stable and meant for programs; `message` is meant for people: it names the
 * operation, what was expected, what it got, and what to do next.
 *
 * @example
 * try { kernel.run(…) } catch (error) { if (error instanceof KernelCompileError) console.error(error.diagnostics) }
 */
export class OrchardError extends Error {
  override readonly name: string = "OrchardError";
  /** A stable word for programs, such as `"compileFailed"`. */
  readonly code: string;
  /** The operation that failed, such as `"metalKernel saxpy"`. */
  readonly operation: string;

  constructor(operation: string, code: string, message: string, options?: ErrorOptions) {
    super(`[${operation}] ${message}`, options);
    this.operation = operation;
    this.code = code;
  }
}

/** An argument's kind, size or value is wrong. */
export class ArgumentError extends OrchardError {
  override readonly name = "ArgumentError";
}

/** A shape, or a grid, does not fit the operation. */
export class ShapeError extends OrchardError {
  override readonly name = "ShapeError";
}

/** A matrix that can't be factorised or solved with: it is singular, or not positive definite. */
export class LinAlgError extends OrchardError {
  override readonly name = "LinAlgError";
  /** Which matrix of the batch: its index along each batch axis; empty where there is one matrix. */
  readonly batch: readonly number[];
  /** The pivot, diagonal element or minor at which it failed, counted from 1. */
  readonly pivot: number;

  constructor(operation: string, message: string, batch: readonly number[], pivot: number) {
    super(operation, "linAlg", message);
    this.batch = batch;
    this.pivot = pivot;
  }
}

/** An element type does not fit the operation. */
export class DTypeError extends OrchardError {
  override readonly name = "DTypeError";
}

/** A backend can't be had (no dylib, another ABI version, no device), or failed while it worked. */
export class BackendError extends OrchardError {
  override readonly name = "BackendError";
}

/** Kernel source that does not compile, or a kernel or constant that the source does not have. */
export class KernelCompileError extends OrchardError {
  override readonly name = "KernelCompileError";
  /** The compiler's whole text, one diagnostic after the other, with source lines. */
  readonly diagnostics: string;

  constructor(operation: string, code: string, diagnostics: string) {
    super(operation, code, diagnostics);
    this.diagnostics = diagnostics;
  }
}

/**
 * The memory limit of all backends together (`memoryLimit`), or a device's or the system's memory, does not allow an
 * allocation.
 */
export class OutOfMemoryError extends OrchardError {
  override readonly name = "OutOfMemoryError";
}

/** Something was used after it was disposed of or closed. */
export class DisposedError extends OrchardError {
  override readonly name = "DisposedError";
}

/** A file or folder can't be read or written: it is not there, it is not permitted, the disk is full. */
export class FileError extends OrchardError {
  override readonly name = "FileError";
  readonly path: string;

  constructor(operation: string, code: string, path: string, message: string, options?: ErrorOptions) {
    super(operation, code, `${path}: ${message}`, options);
    this.path = path;
  }
}

/** A file is not of the format that it should have: damaged, cut off, or something else altogether. */
export class FileFormatError extends OrchardError {
  override readonly name = "FileFormatError";
  readonly path: string;
  /** The tensor in the file that is wrong, where it is one. */
  readonly tensor: string | undefined;

  constructor(operation: string, code: string, path: string, message: string, tensor?: string) {
    // A broken file may have a name of megabytes.
    const name = tensor === undefined || tensor.length <= 200 ? tensor : `${tensor.slice(0, 200)}…`;
    super(operation, code, `${path}: ${name === undefined ? "" : `tensor "${name}": `}${message}`);
    this.path = path;
    this.tensor = tensor;
  }
}

/** A package that only some functions need is not installed, or can't be loaded. */
export class PackageError extends OrchardError {
  override readonly name = "PackageError";
  /** The package's name. */
  readonly package: string;

  constructor(operation: string, code: string, name: string, message: string, options?: ErrorOptions) {
    super(operation, code, message, options);
    this.package = name;
  }
}

/** A folder holds no checkpoint that can be used. */
export class CheckpointError extends OrchardError {
  override readonly name = "CheckpointError";
}

/** Text data can't be trained on: nothing in it is readable, it is too short, or its tokens do not fit the model. */
export class DataError extends OrchardError {
  override readonly name = "DataError";
}
