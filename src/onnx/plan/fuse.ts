/** Fuses the steps of a plan. */
import { fuseConvolutions } from "./convolutions.ts";
import { type Draft, Edit } from "./edit.ts";
import { fuseFunctions } from "./functions.ts";
import type { PlanParts } from "./plan.ts";
import { fuseProducts } from "./products.ts";

/** Returns a plan with fewer steps and the same results, up to rounding. */
export function simplified(draft: Draft): PlanParts {
  const edit = new Edit(draft);
  fuseFunctions(edit);
  fuseProducts(edit);
  fuseConvolutions(edit);
  return edit.parts();
}
