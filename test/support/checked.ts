import { beforeAll } from "bun:test";
import { metalContext } from "../../src/backend/metal/context.ts";

/**
 * Runs the file's kernels under the checker of the software device. After the file, its findings are an error, and the
 * checker is off again (`leftovers.ts`).
 */
export function useChecker(): void {
  beforeAll(() => {
    const context = metalContext();
    if (context.isSoftware) context.configure("check", true);
  });
}
