import { isMetalOpen, metalContext } from "./context.ts";

/**
 * Returns the number of times that the dylib has copied elements so far: to another storage mode, to make them
 * contiguous, to stage them, or back.
 */
export function metalCopies(): number {
  if (!isMetalOpen()) return 0;
  const { copiesStorage, copiesContiguous, copiesStaging, copiesWriteBack } = metalContext().statistics();
  return copiesStorage + copiesContiguous + copiesStaging + copiesWriteBack;
}
