/** Compiles drawn programs. */
import { metalContext } from "../../../../src/backend/metal/context.ts";
import { createLibrary } from "../../../../src/backend/metal/pipeline.ts";
import { KernelCompileError } from "../../../../src/index.ts";

/** Every version has to accept the drawn programs: they use nothing newer than the first version. */
export const versions = ["3.1", "3.2", "4.0", "4.1"] as const;

/** Returns the compiler's output; undefined if the whole program compiles in both passes. */
export function refusal(source: string, languageVersion: (typeof versions)[number]): string | undefined {
  const context = metalContext();
  if (context.isSoftware) context.configure("whole", true);
  try {
    context.native.orchard_release(createLibrary(context, "legal", { source, languageVersion, fileName: "drawn" }));
    return undefined;
  } catch (error) {
    if (error instanceof KernelCompileError) return error.diagnostics;
    throw error;
  } finally {
    if (context.isSoftware) context.configure("whole", false);
  }
}
