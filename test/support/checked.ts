/** Runs the tests of a file under the checker of Metal's software device. */
import { afterEach, beforeEach } from "bun:test";
import { metalContext } from "../../src/backend/metal/context.ts";
import { environmentFlag } from "../../src/core/environment.ts";
import { checkFindings } from "../ops/run.ts";

/**
 * Turns the checker on before each test of the file or of the `describe` block that calls this. A test fails if the
 * checker finds a mistake in one of its kernels. Without this call, the checker is off at the start of each file.
 * A test may turn it off, such as one with a command buffer that fails, after which work reads unwritten memory.
 */
export function checkKernels(): void {
  if (environmentFlag("ORCHARD_SKIP_METAL")) return;
  beforeEach(() => void metalContext().configure("check", true));
  afterEach(() => {
    if (metalContext().isChecked) checkFindings({ name: "this test" });
  });
}
