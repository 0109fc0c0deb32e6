import { FileError } from "../core/errors.ts";

interface SystemFailure {
  readonly code: string;
  readonly meaning: string;
}

/** The error codes and messages of system errors. */
const failures: Readonly<Record<string, SystemFailure>> = {
  ENOENT: { code: "notFound", meaning: "no such file or folder" },
  ENOTDIR: { code: "notFound", meaning: "a part of the path is a file, not a folder" },
  ENAMETOOLONG: { code: "nameTooLong", meaning: "the name is too long" },
  ELOOP: { code: "notFound", meaning: "too many symbolic links" },
  EISDIR: { code: "isFolder", meaning: "expected a file, got a folder" },
  EEXIST: { code: "exists", meaning: "the file already exists" },
  EACCES: { code: "notPermitted", meaning: "permission denied" },
  EPERM: { code: "notPermitted", meaning: "operation not permitted" },
  EROFS: { code: "notPermitted", meaning: "the file system is read-only" },
  ENOSPC: { code: "diskFull", meaning: "the disk is full; free some space and try again" },
  EDQUOT: { code: "diskFull", meaning: "the disk quota is exceeded; free some space and try again" },
  EFBIG: { code: "fileTooLarge", meaning: "the file would exceed the size limit (see `ulimit -f`)" },
  EMFILE: { code: "tooManyFiles", meaning: "this process has too many open files (see `ulimit -n`)" },
  EIO: { code: "deviceFailed", meaning: "input/output error of the disk" },
};

/** Converts a system error to a {@link FileError}. Other errors are returned unchanged. */
export function fileError(operation: string, path: string, cause: unknown, suffix = ""): unknown {
  const name = cause instanceof Error && "code" in cause ? String(cause.code) : undefined;
  if (name === undefined || !/^E[A-Z0-9]+$/.test(name)) return cause;
  const { code, meaning } = failures[name] ?? { code: "failed", meaning: "the system call failed" };
  return new FileError(operation, code, path, `${meaning} (${name})${suffix}`, { cause });
}

/** Runs a function, and converts its system errors. @throws {FileError} */
export function withFileErrors<Result>(operation: string, path: string, body: () => Result): Result {
  try {
    return body();
  } catch (cause) {
    throw fileError(operation, path, cause);
  }
}
