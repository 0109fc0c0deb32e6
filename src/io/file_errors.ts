import { FileError } from "../core/errors.ts";

interface SystemFailure {
  readonly code: string;
  readonly meaning: string;
}

/** What the system's error names mean to somebody whose file it is. */
const failures: Readonly<Record<string, SystemFailure>> = {
  ENOENT: { code: "notFound", meaning: "there is no such file or folder" },
  ENOTDIR: { code: "notFound", meaning: "a part of the path is a file, and not a folder" },
  EISDIR: { code: "isFolder", meaning: "it is a folder, and a file is wanted" },
  EEXIST: { code: "exists", meaning: "a file is in the way" },
  EACCES: { code: "notPermitted", meaning: "this user may not do that" },
  EPERM: { code: "notPermitted", meaning: "this user may not do that" },
  EROFS: { code: "notPermitted", meaning: "the file system is read-only" },
  ENOSPC: { code: "diskFull", meaning: "the disk is full; make room and try again" },
  EDQUOT: { code: "diskFull", meaning: "this user's share of the disk is used up; make room and try again" },
  EFBIG: { code: "fileTooLarge", meaning: "the file would be larger than is allowed here (see `ulimit -f`)" },
  EMFILE: { code: "tooManyFiles", meaning: "this process has too many files open (see `ulimit -n`)" },
  EIO: { code: "deviceFailed", meaning: "the disk failed" },
};

/** The system's error as ours, with what it means; anything else as it is. */
export function fileError(operation: string, path: string, cause: unknown, then = ""): unknown {
  const name = cause instanceof Error && "code" in cause ? String(cause.code) : undefined;
  if (name === undefined || !/^E[A-Z0-9]+$/.test(name)) return cause;
  const { code, meaning } = failures[name] ?? { code: "failed", meaning: "the system refused" };
  return new FileError(operation, code, path, `${meaning} (${name})${then}`, { cause });
}

/** The result of a body whose system errors become ours. @throws {FileError} */
export function withFileErrors<Result>(operation: string, path: string, body: () => Result): Result {
  try {
    return body();
  } catch (cause) {
    throw fileError(operation, path, cause);
  }
}
