/**
 * The base class of all errors that Orchard throws. `code` is stable and meant for programs. `message` is meant for
 * people: it states the operation, what it expected, what it got, and what to do next.
 *
 * @example
 * try { kernel.run(…) } catch (error) { if (error instanceof KernelCompileError) console.error(error.diagnostics) }
 */
export class OrchardError extends Error {
  override readonly name: string = "OrchardError";
  /** A stable identifier for programs, such as `"compileFailed"`. */
  readonly code: string;
  /** The operation that failed, such as `"metalKernel saxpy"`. */
  readonly operation: string;

  constructor(operation: string, code: string, message: string, options?: ErrorOptions) {
    super(`[${operation}] ${message}`, options);
    this.operation = operation;
    this.code = code;
  }
}

/** An argument has a wrong type, size or value. */
export class ArgumentError extends OrchardError {
  override readonly name = "ArgumentError";
}

/** A shape or grid does not fit the operation. */
export class ShapeError extends OrchardError {
  override readonly name = "ShapeError";
}

/** A matrix can't be factorized or used to solve a system: it is singular or not positive definite. */
export class LinAlgError extends OrchardError {
  override readonly name = "LinAlgError";
  /** The index of the matrix along each batch axis; empty if there is one matrix. */
  readonly batch: readonly number[];
  /** The pivot, diagonal element or minor at which the operation failed, counted from 1. */
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

/** A backend is unavailable (no dylib, another ABI version, no device), or failed while it ran. */
export class BackendError extends OrchardError {
  override readonly name = "BackendError";
}

/** Kernel source does not compile, or lacks a requested kernel or constant. */
export class KernelCompileError extends OrchardError {
  override readonly name = "KernelCompileError";
  /** The compiler's complete output: all diagnostics with source lines. */
  readonly diagnostics: string;

  constructor(operation: string, code: string, diagnostics: string) {
    super(operation, code, diagnostics);
    this.diagnostics = diagnostics;
  }
}

/**
 * An allocation exceeds the memory limit of all backends together (`memoryLimit`), or a device's or the system's
 * memory.
 */
export class OutOfMemoryError extends OrchardError {
  override readonly name = "OutOfMemoryError";
}

/** An object was used after it was disposed of or closed. */
export class DisposedError extends OrchardError {
  override readonly name = "DisposedError";
}

/** A file or folder can't be read or written: it does not exist, access is denied, or the disk is full. */
export class FileError extends OrchardError {
  override readonly name = "FileError";
  readonly path: string;

  constructor(operation: string, code: string, path: string, message: string, options?: ErrorOptions) {
    super(operation, code, `${path}: ${message}`, options);
    this.path = path;
  }
}

/** A file does not have the expected format: it is damaged, truncated or in a different format. */
export class FileFormatError extends OrchardError {
  override readonly name = "FileFormatError";
  readonly path: string;
  /** The name of the wrong tensor in the file, if the error concerns one. */
  readonly tensor: string | undefined;

  constructor(operation: string, code: string, path: string, message: string, tensor?: string) {
    // In a damaged file, the name may have megabytes.
    const name = tensor === undefined || tensor.length <= 200 ? tensor : `${tensor.slice(0, 200)}…`;
    super(operation, code, `${path}: ${name === undefined ? "" : `tensor "${name}": `}${message}`);
    this.path = path;
    this.tensor = tensor;
  }
}

/** An optional package that a function needs is not installed or can't be loaded. */
export class PackageError extends OrchardError {
  override readonly name = "PackageError";
  /** The package's name. */
  readonly package: string;

  constructor(operation: string, code: string, name: string, message: string, options?: ErrorOptions) {
    super(operation, code, message, options);
    this.package = name;
  }
}

/** A folder contains no usable checkpoint. */
export class CheckpointError extends OrchardError {
  override readonly name = "CheckpointError";
}

/** Text data can't be used for training: it is unreadable or too short, or its tokens do not fit the model. */
export class DataError extends OrchardError {
  override readonly name = "DataError";
}
