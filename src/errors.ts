/**
 * Every error that Orchard throws. `code` is stable and meant for programs; `message` is meant for people: it names the
 * operation, what came, what was wanted, and what to do next.
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

/** The memory limit, or the device's memory, does not allow an allocation. */
export class OutOfMemoryError extends OrchardError {
  override readonly name = "OutOfMemoryError";
}

/** Something was used after it was disposed of or closed. */
export class DisposedError extends OrchardError {
  override readonly name = "DisposedError";
}
