import { isMetalOpen, metalContext } from "./context.ts";

/**
 * How often the dylib copied elements so far to have them in another storage mode, contiguous, staged or back where
 * they came from.
 */
export function metalCopies(): number {
  if (!isMetalOpen()) return 0;
  const { copiesStorage, copiesContiguous, copiesStaging, copiesWriteBack } = metalContext().statistics();
  return copiesStorage + copiesContiguous + copiesStaging + copiesWriteBack;
}
